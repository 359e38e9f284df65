package lessons

import (
	"time"

	"queuelab/bench/learn"
)

func async() learn.Lesson {
	return learn.Lesson{
		Number: 42, Name: "async", Topic: learn.Running,
		Question: learn.Text{
			EN: "What does a queue between click and order improve?",
			ZH: "下单异步化到底提升了什么？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Orders per second: nobody waits for the database any more, so it takes more of them.", ZH: "下单 TPS：没人等数据库了，数据库就能写得更多。"},
				If: learn.Conditions{"click-gain": learn.AtLeast(2), "queue-gain": learn.AtLeast(2.2)}},
			{Text: learn.Text{EN: "The answer to the click. Orders come no faster, until the consumer writes many in one transaction.", ZH: "点击的响应时间。订单并不会更快，除非消费者一个事务写一批。"},
				If: learn.Conditions{"click-gain": learn.AtLeast(2), "queue-gain": learn.AtMost(2), "batch-gain": learn.AtLeast(2)}},
			{Text: learn.Text{EN: "Neither: the click waits for the queue instead.", ZH: "都没有：只是从等数据库变成等队列。"},
				If: learn.Conditions{"click-gain": learn.AtMost(1.8)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis"}, {Kind: "postgres"}},
		Takes: 3 * time.Second,
		Try: func(s *learn.Stand) {
			g := openGate(s, 100000, nil)
			t := &tempo{stand: s, gate: g, store: openStore(s, g)}
			q := s.Queue("redis-streams")
			t.publisher, t.consumer = s.Publisher(q), s.Consumer(q)
			s.Quietly(func() { t.direct(50); t.queued(50, 1); t.queued(50, 256) }) // whoever comes first warms up

			s.Step("Three rounds of each: 25 buyers at a time click until there are 100 orders. First without a queue: the click waits for the transaction.", "各做三轮：25 个并发买家点击，直到 100 个订单。先不用队列：点击等事务做完。")
			var direct, single, batched pace
			for i := range 3 {
				if i == 1 {
					s.Step("Again, all three kinds.", "再来，三种各一轮。")
				}
				direct.add(t.direct(100))
				if i == 0 {
					s.Step("With a queue: the click publishes. 25 consumers write one order in a transaction, the same one.", "用队列：点击只发消息。25 个消费者，一个事务写一个订单，事务和刚才一样。")
				}
				single.add(t.queued(100, 1))
				if i == 0 {
					s.Step("With a queue, and one consumer that writes up to 256 orders in a transaction.", "用队列，一个消费者一个事务最多写 256 个订单。")
				}
				batched.add(t.queued(100, 256))
			}
			s.Millis("sync-click", direct.click(), "median answer to a click without a queue", "不用队列时点击响应的中位数")
			s.Millis("queue-click", single.click(), "median answer to a click with a queue", "用队列时点击响应的中位数")
			s.Millis("queue-order", single.order(), "median from click to order with a queue", "用队列时从点击到订单入库的中位数")
			s.Figure("sync-rate", direct.rate(), "/s", learn.Text{EN: "orders without a queue", ZH: "不用队列的下单速度"})
			s.Figure("queue-rate", single.rate(), "/s", learn.Text{EN: "orders with a queue, one in a transaction", ZH: "用队列、一个事务一单的下单速度"})
			s.Figure("batch-rate", batched.rate(), "/s", learn.Text{EN: "orders with a queue, many in a transaction", ZH: "用队列、一个事务多单的下单速度"})
			s.Figure("click-gain", float64(direct.click())/float64(single.click()), "×", learn.Text{EN: "faster answers to clicks", ZH: "点击响应快了多少倍"})
			s.Figure("queue-gain", single.rate()/direct.rate(), "×", learn.Text{EN: "orders a second, one in a transaction", ZH: "一事务一单时的下单速度倍数"})
			s.Figure("batch-gain", batched.rate()/direct.rate(), "×", learn.Text{EN: "orders a second, many in a transaction", ZH: "一事务多单时的下单速度倍数"})
			s.Figure("wait-ratio", float64(single.order())/float64(single.click()), "×", learn.Text{EN: "from click to order, against the click's answer", ZH: "从点击到入库，是点击响应的多少倍"})
		},
		Expect: learn.Conditions{"wait-ratio": learn.AtLeast(2)},
		Why: learn.Text{
			EN: "All orders of a voucher take its row of stock one after the other, so the database sets the pace: {sync-rate} without a queue, {queue-rate} with one. The click no longer waits for it and is answered after {queue-click} instead of {sync-click}; its order comes after {queue-order}, which the buyer still waits for, somewhere else. What a queue does allow is batching: with many orders in one transaction, which takes the row once, {batch-rate}.",
			ZH: "同一张券的订单要排队更新同一行库存，速度由数据库决定：不用队列 {sync-rate}，用队列 {queue-rate}。点击不再等它，响应从 {sync-click} 变成 {queue-click}；订单要 {queue-order} 之后才入库，买家还是要等，只是换了地方等。队列真正带来的是批量：一个事务写很多单、库存行只锁一次，达到 {batch-rate}。",
		},
		Say: learn.Text{
			EN: "Asynchrony shortens the answer to the click and evens out the peak; it does not raise what the database can do. Throughput comes from what the queue makes possible: batches, few connections, no contention for the hot row. The price is a second step for the buyer, who must be told the result, and orders on their way that must survive a crash.",
			ZH: "异步化缩短的是点击响应，并且削峰；它不会提高数据库的能力。吞吐的提升来自队列带来的批量写、少量连接、热点行不再竞争。代价是用户要再等一次结果，而且在途订单必须扛得住宕机。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Little's law: what is on its way is rate times time", ZH: "利特尔法则：在途数量 = 速率 × 时间"}, URL: "https://en.wikipedia.org/wiki/Little%27s_law"},
		},
	}
}
