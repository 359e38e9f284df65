package lessons

import (
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/rediszset"
	"queuelab/bench/learn"
	"queuelab/queue"
)

func orderTimeout() learn.Lesson {
	return learn.Lesson{
		Number: 30, Name: "order-timeout", Topic: learn.Orders,
		Question: learn.Text{
			EN: "Closing unpaid orders: a scan of the database, a delay queue, or Redis' key-expiry events? Whoever closes them is down when the time to pay ends, and comes back.",
			ZH: "超时未支付怎么关单：定时扫库、延迟队列，还是 Redis 过期事件？到期那一刻负责关单的进程正好宕机，之后恢复。",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Any of them: each tells again what was missed.", ZH: "都可以：错过的都会再通知。"},
				If: learn.Conditions{"event-after": learn.Is(1), "delay-after": learn.Is(1), "scan-after": learn.Is(1)}},
			{Text: learn.Text{EN: "The event is lost for ever. The delay queue waits, but dies with its Redis; the scan closes the order in both cases.", ZH: "过期事件永远丢了；延迟队列会等，但 Redis 丢数据它也没了；扫库两种情况都能关单。"},
				If: learn.Conditions{"event-after": learn.Is(0), "delay-after": learn.Is(1), "delay-crash": learn.Is(0), "scan-after": learn.Is(1), "scan-crash": learn.Is(1)}},
			{Text: learn.Text{EN: "None: an order whose moment was missed stays open.", ZH: "都不行：错过了那一刻，订单就一直不关。"},
				If: learn.Conditions{"event-after": learn.Is(0), "delay-after": learn.Is(0), "scan-after": learn.Is(0)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis", Setting: "no-persistence", Own: true}},
		Takes: 7 * time.Second,
		Try: func(s *learn.Stand) {
			const toPay = time.Second
			client := s.Redis()
			var shop *learn.Service
			var voucher string
			var q queue.Queue
			s.Quietly(func() {
				shop = s.Service(learn.ServiceOptions{Redis: true, Args: []string{"--allow-unsafe=redis-persistence"}}) // it would refuse such a Redis
				voucher = shop.Offer(10, map[string]any{"payWithinSeconds": int(toPay.Seconds())})
				q = s.Queue("redis-zset")
				s.Do(client, "CONFIG", "SET", "notify-keyspace-events", "Ex")
			})
			listen := func() *redis.PubSub {
				events := client.Subscribe(s.Context(), "__keyevent@0__:expired")
				_, err := events.Receive(s.Context())
				s.Must(err)
				return events
			}
			// heard counts events within a while.
			heard := func(events *redis.PubSub, within time.Duration) (n int64) {
				defer events.Close()
				select {
				case <-events.Channel():
					n = 1
				case <-time.After(within):
				}
				return n
			}

			s.Step("A key that expires while somebody listens.", "先看有人监听时：键过期。")
			events := listen()
			s.Do(client, "SET", s.Name("timer0"), s.ID, "PX", 200)
			s.Count("event-there", heard(events, 5*time.Second), "events heard by a listener who is there", "监听者在线时收到的事件")

			// missed starts a timer of each kind for an unpaid order, has all who would
			// act on it away when the time ends, and counts what closes after they are back.
			missed := func(user int, round string, of learn.Text, down func()) {
				var order string
				s.Quietly(func() {
					order, _ = shop.Click(voucher, user)
					if status := shop.Await(order, user); status != "confirmed" {
						s.Fail("the order is %s", status)
					}
				})
				s.Do(client, "SET", s.Name("timer"+round), s.ID, "PX", toPay.Milliseconds())
				p := s.Publisher(q)
				s.Must(p.Publish(s.Context(), queue.Message{ID: s.ID + "-" + round, Body: []byte(order), Headers: map[string]string{rediszset.Header: toPay.String()}}))
				s.Must(p.Close())
				shop.Die()
				down()
				time.Sleep(toPay + 300*time.Millisecond)
				s.Int(s.RedisUnseen(), "EXISTS", s.Name("timer"+round)) // it has expired at the latest now
				s.Step("The time to pay is over, and all come back.", "支付时限已过，大家恢复运行。")
				n := heard(listen(), 700*time.Millisecond)
				s.Count("event-"+round, n, "events heard by a listener who comes back ("+of.EN+")", "监听者恢复后收到的事件（"+of.ZH+"）")
				c := s.Consumer(q)
				s.Count("delay-"+round, int64(len(s.TakeFor(c, 1, 700*time.Millisecond))), "messages of the delay queue ("+of.EN+")", "延迟队列送来的消息（"+of.ZH+"）")
				s.Must(c.Close())
				s.Quietly(func() { shop.Start() })
				status := ""
				s.Eventually("the order to be closed", 5*time.Second, func() bool {
					s.Must(shop.DB.QueryRowContext(s.Context(), "SELECT status FROM orders WHERE id = $1", order).Scan(&status))
					return status == "cancelled"
				})
				s.Count("scan-"+round, count(status == "cancelled"), "orders closed by the service's scan ("+of.EN+")", "服务扫库关闭的订单（"+of.ZH+"）")
			}

			s.Step("An order, and three timers of a second for it: a key, a delayed message, a column in the database. Then the service is killed, and nobody listens.",
				"一个订单，三个一秒的计时：过期键、延迟消息、数据库里的一列。随后服务被 kill -9，没有人监听。")
			missed(1, "after", learn.Text{EN: "service killed", ZH: "服务宕机"}, func() {})
			s.Step("The same once more, and Redis, which keeps nothing on disk, is killed as well.", "再来一次，这回不落盘的 Redis 也被杀掉。")
			missed(2, "crash", learn.Text{EN: "Redis killed too", ZH: "Redis 也宕机"}, func() {
				b := s.Broker("redis")
				s.Must(b.Kill(s.Context()), b.Restart(s.Context()))
				s.Eventually("Redis to answer", 5*time.Second, func() bool {
					_, err := s.Ask(client, "CONFIG", "SET", "notify-keyspace-events", "Ex")
					return err == nil
				})
			})
			s.Count("database-left", shop.Query("SELECT stock_left FROM vouchers"), "units back on sale, of 10", "回到可售的库存，共 10 件")
		},
		Expect: learn.Conditions{"event-there": learn.Is(1), "event-crash": learn.Is(0), "database-left": learn.Is(10)},
		Why: learn.Text{
			EN: "An expiry event is a Pub/Sub message: a listener who was there heard {event-there}, one who came back a moment later heard {event-after}, and nothing keeps it. A delayed message waits for its consumer ({delay-after} came), but it is a second copy of the deadline, and was gone with the Redis that held it ({delay-crash} came). The database has the order and its deadline in one row: the service's scan closed {scan-after} and {scan-crash}, and {database-left} of 10 units are back.",
			ZH: "过期事件就是 Pub/Sub 消息：在线的监听者收到 {event-there} 条，晚一点回来的收到 {event-after} 条，谁也不保存它。延迟消息会等消费者（送到 {delay-after} 条），但它是期限的另一份副本，Redis 丢数据时就没了（送到 {delay-crash} 条）。数据库里订单和期限在同一行：扫库分别关闭了 {scan-after} 个和 {scan-crash} 个，库存回到 {database-left}/10。",
		},
		Say: learn.Text{
			EN: "The deadline belongs into the order's row, and a scan over an index on it is what I rely on; it sleeps until the nearest deadline, so it is also punctual. A delay queue may be the trigger when there are very many orders, with the scan behind it. Key-expiry events I would not use: fire and forget.",
			ZH: "支付期限写在订单行里，靠带索引的扫描兜底；扫描睡到最近的期限，所以也准时。订单量很大时可以用延迟队列触发，再用扫描补漏。Redis 过期事件不可靠，不用：发了就不管。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Redis on the delivery of keyspace notifications", ZH: "Redis：键空间通知的投递保证"}, URL: "https://redis.io/docs/latest/develop/pubsub/keyspace-notifications/"},
		},
	}
}
