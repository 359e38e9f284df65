package lessons

import (
	"sync"
	"time"

	"queuelab/bench/learn"
	"queuelab/bench/proxy"
	"queuelab/queue"
)

func admitPublish() learn.Lesson {
	return learn.Lesson{
		Number: 14, Name: "admit-publish", Topic: learn.Admission,
		Question: learn.Text{
			EN: "Redis took the unit, and the publish to the queue had no answer. What now?",
			ZH: "Redis 扣减成功，消息却没发成功（没有回应），怎么办？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Give the unit back: without an answer the message is not in the queue.", ZH: "把库存加回去：没有回应，说明消息没进队列。"},
				If: learn.Conditions{"delivered": learn.Is(0)}},
			{Text: learn.Text{EN: "Nothing: the client library sends it again once it is connected.", ZH: "不用管：客户端库重连之后会自动补发。"},
				If: learn.Conditions{"delivered": learn.AtLeast(1), "unscanned": learn.AtLeast(1)}},
			{Text: learn.Text{EN: "Keep the unit with a mark, and publish the same order again until it is in the database.", ZH: "留着库存和一个待定标记，用同一订单号补发，直到订单入库。"},
				If: learn.Conditions{"delivered": learn.AtLeast(1), "unscanned": learn.Is(0), "rescanned": learn.Is(5)}},
		},
		Right: 2,
		Needs: []learn.Need{{Kind: "redis"}, {Kind: "rabbitmq"}},
		Takes: 10 * time.Second,
		Try: func(s *learn.Stand) {
			redis, left := s.Redis(), s.Name("left")
			deleteAfter(s, left)

			s.Step("The naive way: DECR, publish, and INCR on any error. The network loses RabbitMQ's confirm.", "天真的写法：DECR，发消息，出错就 INCR。网络丢掉了 RabbitMQ 的 confirm。")
			s.Do(redis, "SET", left, 10)
			q := s.Queue("rabbitmq")
			p, c := s.Publisher(q), s.Consumer(q)
			lost := s.Proxy("rabbitmq").LoseReply(proxy.Published("rabbitmq"))
			s.Do(redis, "DECR", left)
			err := p.Publish(s.Context(), s.Messages(1)...)
			if outcome := queue.OutcomeOf(err, 0); outcome != queue.Unknown {
				s.Fail("the confirm was lost, and the publish is %v", outcome)
			}
			s.Do(redis, "INCR", left)
			s.Eventually("the confirm to be lost", 5*time.Second, func() bool { return closed(lost) })
			s.Count("given-back", s.Int(redis, "GET", left), "units in Redis after INCR", "INCR 之后 Redis 里的库存")
			s.Count("delivered", int64(len(s.Drain(c, time.Second))), "orders that the consumer gets all the same", "消费者照样收到的订单")

			s.Step("The service without its rescan. The network to RabbitMQ is dead; five buyers are admitted; kill -9; the network is back.", "服务，关掉补发扫描：到 RabbitMQ 的网络断了，5 个买家通过准入，kill -9，网络恢复。")
			s.Count("unscanned", fiveOrders(s, "0", 2*time.Second), "of 5 admitted orders in the database, without a rescan", "5 个已准入的订单里入库的（不扫描）")
			s.Step("The same with the rescan of marks that are half a second old.", "同样的过程，打开补发扫描：标记满半秒就补发。")
			s.Count("rescanned", fiveOrders(s, "500ms", 15*time.Second), "of 5 admitted orders in the database, with the rescan", "5 个已准入的订单里入库的（有扫描）")
		},
		Expect: learn.Conditions{"given-back": learn.Is(10)},
		Why: learn.Text{
			EN: "No answer is no refusal: here RabbitMQ had the message, and only its confirm was lost, so that {delivered} order came though {given-back} units of 10 were back. And what a dead process had not sent nobody sends for it: of 5 admitted orders {unscanned} came about. The service's script sets a mark beside the unit, and a rescan publishes marked orders again under the same id until they are in the database: {rescanned} of 5 came about.",
			ZH: "没有回应不等于失败：这次 RabbitMQ 已经收到消息，只是 confirm 丢了，库存加回到 {given-back}/10，订单照样来了 {delivered} 个。反过来，进程死前没发出去的，没有人替它发：5 个已准入的订单入库 {unscanned} 个。服务的脚本在扣减的同时留下标记，补发扫描用同一订单号重发，直到入库：5 个里入库 {rescanned} 个。",
		},
		Say: learn.Text{
			EN: "Redis and the queue are two systems, so between them I keep a pending mark, set in the same script as the unit, like an outbox. A rescan publishes old marks again under the same order id, the consumer is idempotent, and the unit goes back only after a certain refusal. Where the queue is in the same Redis, the script itself can enqueue, and the gap is gone.",
			ZH: "Redis 和队列是两个系统，中间用待定标记衔接：和扣减写在同一个脚本里，相当于 outbox。扫描超时的标记，用同一订单号补发，消费端幂等；只有确定被拒绝才加回库存。如果队列就在同一个 Redis，可以在脚本里直接入队，这个空档就没有了。",
		},
		Further: []learn.Link{
			{Cell: "rabbitmq/quorum lost-reply-publish"},
			{Text: learn.Text{EN: "The transactional outbox", ZH: "事务性发件箱（outbox）模式"}, URL: "https://microservices.io/patterns/data/transactional-outbox.html"},
		},
	}
}

// fiveOrders has five buyers admitted by a service that cannot reach its queue
// and is killed then, and counts the orders that it makes once it is started again.
func fiveOrders(s *learn.Stand, rescan string, within time.Duration) (orders int64) {
	network := s.Proxy("rabbitmq")
	drop := func(is bool) {
		for _, d := range []proxy.Direction{proxy.ToServer, proxy.ToClient} {
			network.Set(d, proxy.Rule{Drop: is})
		}
	}
	url := s.URL("rabbitmq")
	s.Open(url)
	service := s.Service(learn.ServiceOptions{Queue: url, Redis: true, Args: []string{"--rescan=" + rescan, "--reconcile=0"}})
	voucher := service.Sell(10)
	deleteAfter(s, gateKeys(voucher)...)
	drop(true)
	var clicks sync.WaitGroup
	for i := range 5 {
		clicks.Go(func() { _, _, _ = service.Buy(s.Context(), voucher, i+1) }) // who waits has no answer from the dead
	}
	unseen := s.RedisUnseen()
	s.Eventually("five buyers to be admitted", 5*time.Second, func() bool {
		return s.Int(unseen, "HLEN", gateKey(voucher, "marks")) == 5
	})
	service.Die()
	clicks.Wait()
	drop(false)
	service.Start()
	for end := time.Now().Add(within); orders < 5 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		orders = service.Query("SELECT count(*) FROM orders WHERE status = 'confirmed'")
	}
	return orders
}
