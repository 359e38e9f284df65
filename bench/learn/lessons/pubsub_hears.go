package lessons

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"time"

	"queuelab/bench/learn"
	"queuelab/queue"
)

func pubsubHears() learn.Lesson {
	const orders = 10
	return learn.Lesson{
		Number: 3, Name: "pubsub-hears", Topic: learn.Redis,
		Question: learn.Text{
			EN: "Why is Redis Pub/Sub no work queue?",
			ZH: "Redis Pub/Sub 为什么不能当任务队列？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "It is one: Redis keeps a message until somebody subscribes.", ZH: "可以当：没人订阅时 Redis 会先存着。"},
				If: learn.Conditions{"none-heard": learn.AtLeast(1)}},
			{Text: learn.Text{EN: "It keeps nothing, but two subscribers share the work.", ZH: "它不存消息，但两个订阅者会分摊工作。"},
				If: learn.Conditions{"none-heard": learn.Is(0), "two-heard": learn.Is(orders)}},
			{Text: learn.Text{EN: "Whoever listens gets everything, each of them, and what nobody hears is gone.", ZH: "在听的人每人都收到全部；没人听的消息就没了。"},
				If: learn.Conditions{"none-heard": learn.Is(0), "two-heard": learn.Is(2 * orders)}},
		},
		Right: 2,
		// Own: it changes how much Redis keeps for a slow subscriber.
		Needs: []learn.Need{{Kind: "redis", Own: true}},
		Takes: 2 * time.Second,
		Try: func(s *learn.Stand) {
			q := s.Open(s.URL("redis-pubsub"))
			p := s.Publisher(q).(queue.ReceiverCounter)
			publish := func() (told int64) {
				for _, m := range s.Messages(orders) {
					heard, err := p.PublishCounted(s.Context(), m)
					s.Must(err)
					told += heard[0]
				}
				return told
			}

			s.Step("Ten orders while nobody has subscribed. A subscriber comes afterwards.", "没有订阅者时发布 10 个订单，之后才有人来订阅。")
			s.Count("none-told", publish(), "receivers that Redis told of", "Redis 报告的接收者数")
			first := s.Consumer(q)
			s.Count("none-heard", int64(len(s.TakeFor(first, orders, 300*time.Millisecond))), "heard by the late subscriber", "晚到的订阅者收到")

			s.Step("Ten more, with that subscriber.", "有一个订阅者，再发 10 个。")
			publish()
			s.Count("one-heard", int64(len(s.Take(first, orders))), "heard by one subscriber", "一个订阅者收到")

			s.Step("Ten more, with a second one beside it.", "旁边再来一个订阅者，再发 10 个。")
			second := s.Consumer(q)
			publish()
			s.Count("two-heard", int64(len(s.Take(first, orders))+len(s.Take(second, orders))), "heard by two subscribers in all", "两个订阅者一共收到")

			s.Step("A subscriber that does not read, and a Redis that keeps 64 kB for it where 32 MB is usual. Publish until Redis says that nobody hears.",
				"一个不读数据的订阅者；Redis 只为它缓冲 64 kB（默认 32 MB）。一直发布，直到 Redis 说没有人在听。")
			told, heard := slowSubscriber(s)
			s.Count("slow-told", told, "messages that Redis says the slow one heard", "Redis 认为慢订阅者收到的")
			s.Count("slow-heard", heard, "messages that it found when it read at last", "它最后真正读到的")
			s.Count("slow-lost", told-heard, "of them lost", "其中丢失的")
		},
		Expect: learn.Conditions{
			"none-told": learn.Is(0), "one-heard": learn.Is(orders),
			"slow-told": learn.AtLeast(10), "slow-heard": learn.AtLeast(1), "slow-lost": learn.AtLeast(1),
		},
		Why: learn.Text{
			EN: "PUBLISH hands a message to the connections that are subscribed at that moment and stores nothing: {none-told} receivers means that it is gone, and who came later heard {none-heard}. Subscribers do not compete: of 10 orders two of them heard {two-heard}. One that reads too slowly is cut off once its output buffer is full: Redis told of {slow-told} messages that it had heard, and {slow-lost} of them never came.",
			ZH: "PUBLISH 只把消息交给此刻已订阅的连接，什么都不存：接收者为 {none-told} 就意味着消息没了，晚到的人收到 {none-heard} 条。订阅者之间不竞争：10 个订单两个订阅者共收到 {two-heard} 条。读得太慢的订阅者，输出缓冲区一满就被断开：Redis 认为它收到 {slow-told} 条，其中 {slow-lost} 条根本没到。",
		},
		Say: learn.Text{
			EN: "Pub/Sub is a broadcast, at most once: no storage, no ack, no competing consumers. A restart of the consumer, a broken connection or a slow reader loses orders, and a second instance handles each of them again. Use it to tell caches and pages of a change; use Streams for work.",
			ZH: "Pub/Sub 是至多一次的广播：不存储、没有 ack、消费者不竞争。消费者重启、断线或读得慢都会丢单，多开一个实例每单又会被处理两遍。它适合通知缓存失效、推送页面；任务队列用 Stream。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Delivery of Pub/Sub", ZH: "Pub/Sub 的投递语义"}, URL: "https://redis.io/docs/latest/develop/pubsub/"},
			{Cell: "redis-pubsub/default no-subscriber"},
		},
	}
}

// slowSubscriber subscribes and does not read until Redis has given it up. It
// returns how many messages Redis counted as heard, and how many came.
func slowSubscriber(s *learn.Stand) (told, heard int64) {
	redis := s.Redis()
	s.Do(redis, "CONFIG", "SET", "client-output-buffer-limit", "pubsub 65536 0 0")
	channel, body := s.Name("news"), bytes.Repeat([]byte("x"), 16<<10)
	conn, err := net.Dial("tcp", s.RedisUnseen().Options().Addr)
	s.Must(err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "SUBSCRIBE %s\r\n", channel)
	s.Must(err)
	s.Eventually("a subscription", 5*time.Second, func() bool {
		return redis.PubSubNumSub(s.Context(), channel).Val()[channel] == 1
	})
	for s.Int(redis, "PUBLISH", channel, body) > 0 {
		if told++; told == 10_000 {
			s.Fail("a subscriber that reads nothing still hears after %d messages", told)
		}
	}
	s.Must(conn.SetReadDeadline(time.Now().Add(5 * time.Second)))
	all, err := io.ReadAll(conn)
	if len(all) == 0 {
		s.Must(err) // a reset ends it as well as a close
	}
	return told, int64(bytes.Count(all, body))
}
