package lessons

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"queuelab/bench/learn"
	"queuelab/bench/proxy"
)

func async() learn.Lesson {
	const buyers = 240
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
		Takes: 9 * time.Second,
		Try: func(s *learn.Stand) {
			network := s.Proxy("postgres")
			// rush has all buyers click, 60 at a time, and tells the median of the
			// answers, and how many orders came in a second.
			rush := func(shop *learn.Service) (click time.Duration, rate float64) {
				var voucher string
				s.Quietly(func() { voucher = shop.Sell(buyers) })
				var mu sync.Mutex
				var took []time.Duration
				next := make(chan int, buyers)
				for i := range buyers {
					next <- i + 1
				}
				close(next)
				network.Set(proxy.ToClient, proxy.Rule{Delay: 3 * time.Millisecond})
				defer network.Set(proxy.ToClient, proxy.Rule{})
				began := time.Now()
				s.Together(60, func(int) error {
					for user := range next {
						at := time.Now()
						_, a, err := shop.Buy(s.Context(), voucher, user)
						if err == nil && a.OrderID == "" {
							err = fmt.Errorf("click: %s", a.Error.Message)
						}
						if err != nil {
							return err
						}
						mu.Lock()
						took = append(took, time.Since(at))
						mu.Unlock()
					}
					return nil
				})
				s.Eventually("all orders to be in the database", 15*time.Second, func() bool {
					return shop.Query("SELECT count(*) FROM orders WHERE status = 'confirmed' AND voucher_id = $1", id(s, voucher)) == buyers
				})
				rate = buyers / time.Since(began).Seconds()
				slices.Sort(took)
				return took[len(took)/2], rate
			}

			s.Step("240 buyers, 60 at a time; the database is 3 ms away. No queue: the click writes the order.", "240 个买家，并发 60；数据库往返 3 毫秒。不用队列：点击里直接写订单。")
			var direct *learn.Service
			s.Quietly(func() { direct = s.Service(learn.ServiceOptions{Postgres: true, Args: []string{"--mode=sync"}}) })
			syncClick, syncRate := rush(direct)
			direct.Die()

			s.Step("With a queue, and a consumer that writes one order in a transaction.", "加上队列，消费者一个事务写一个订单。")
			var queued *learn.Service
			s.Quietly(func() {
				url := s.URL("redis-streams")
				s.Open(url)
				queued = s.Service(learn.ServiceOptions{Queue: url, Redis: true, Postgres: true, Args: []string{"--batch=1"}})
			})
			queueClick, queueRate := rush(queued)
			waited := queued.Query("SELECT CAST(percentile_cont(0.5) WITHIN GROUP (ORDER BY decided_ms - admitted_ms) AS bigint) FROM orders")
			forgetVoucher(s, fmt.Sprint(queued.Query("SELECT max(id) FROM vouchers")))

			s.Step("The same, and the consumer writes up to 256 orders in a transaction.", "同样有队列，消费者一个事务最多写 256 个订单。")
			s.Quietly(func() {
				queued.Die()
				queued.Start("--batch=256")
			})
			_, batchRate := rush(queued)
			forgetVoucher(s, fmt.Sprint(queued.Query("SELECT max(id) FROM vouchers")))

			s.Millis("sync-click", syncClick, "median answer to a click without a queue", "不用队列时点击响应的中位数")
			s.Millis("queue-click", queueClick, "median answer to a click with a queue", "用队列时点击响应的中位数")
			s.Millis("queue-order", time.Duration(waited)*time.Millisecond, "median from click to order with a queue", "用队列时从点击到订单入库的中位数")
			s.Figure("sync-rate", syncRate, "/s", learn.Text{EN: "orders without a queue", ZH: "不用队列的下单速度"})
			s.Figure("queue-rate", queueRate, "/s", learn.Text{EN: "orders with a queue, one in a transaction", ZH: "用队列、一个事务一单的下单速度"})
			s.Figure("batch-rate", batchRate, "/s", learn.Text{EN: "orders with a queue, many in a transaction", ZH: "用队列、一个事务多单的下单速度"})
			s.Figure("click-gain", float64(syncClick)/float64(queueClick), "×", learn.Text{EN: "faster answers to clicks", ZH: "点击响应快了多少倍"})
			s.Figure("queue-gain", queueRate/syncRate, "×", learn.Text{EN: "orders a second, one in a transaction", ZH: "一事务一单时的下单速度倍数"})
			s.Figure("batch-gain", batchRate/syncRate, "×", learn.Text{EN: "orders a second, many in a transaction", ZH: "一事务多单时的下单速度倍数"})
			s.Figure("wait-ratio", float64(waited)*1e6/float64(queueClick), "×", learn.Text{EN: "from click to order, against the click's answer", ZH: "从点击到入库，是点击响应的多少倍"})
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

// id is a voucher's as the database has it.
func id(s *learn.Stand, text string) (n int64) {
	_, err := fmt.Sscan(text, &n)
	s.Must(err)
	return n
}
