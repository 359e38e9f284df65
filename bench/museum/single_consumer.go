package museum

import (
	"time"

	"queuelab/bench/learn"
)

func singleConsumer() Exhibit {
	const orders, work = 20, 20 * time.Millisecond
	// drain lets so many consumers work the orders off side by side.
	drain := func(s *learn.Stand, consumers int) (each []int64, took time.Duration) {
		q := s.Queue("redis-streams")
		each = make([]int64, consumers)
		all := make([]func() error, consumers)
		left := make(chan struct{}, orders)
		for i := range consumers {
			c := s.Consumer(q)
			all[i] = func() error {
				for {
					select {
					case left <- struct{}{}:
					default:
						return nil // all are taken
					}
					ds, err := c.Receive(s.Context(), 1)
					if err != nil {
						return err
					}
					time.Sleep(work) // the handler
					if err := c.Ack(s.Context(), ds...); err != nil {
						return err
					}
					each[i]++
				}
			}
		}
		s.Publish(q, orders)
		began := time.Now()
		s.Together(consumers, func(i int) error { return all[i]() })
		return each, time.Since(began)
	}
	return Exhibit{
		Number: 17, Name: "one-consumer-only", Found: []string{"000", "001"},
		Idea: learn.Text{
			EN: "A Stream has one consumer; who needs more than that needs another broker.",
			ZH: "Stream 只能有一个消费者，想多个消费者就得换中间件。",
		},
		Needs: []learn.Need{{Kind: "redis"}}, Takes: 2 * time.Second,
		Damage: func(s *learn.Stand) {
			each, took := drain(s, 1)
			s.Count("damage-handled", each[0], "orders by the one consumer", "唯一的消费者处理的订单")
			s.Millis("damage-took", took, "for 20 orders of 20 ms each", "20 条订单、每条 20 毫秒的总用时")
		},
		Repair: func(s *learn.Stand) {
			each, took := drain(s, 2)
			s.Count("repair-first", each[0], "orders by the first consumer of the group", "组内第一个消费者处理的")
			s.Count("repair-second", each[1], "orders by the second", "第二个处理的")
			s.Count("repair-all", each[0]+each[1], "orders by both: none twice, none left out", "两个合计：不重不漏")
			s.Millis("repair-took", took, "for the same work", "同样工作的用时")
		},
		Shows: learn.Conditions{
			"damage-handled": learn.Is(orders), "damage-took": learn.AtLeast(400),
			"repair-first": learn.AtLeast(3), "repair-second": learn.AtLeast(3), "repair-all": learn.Is(orders),
		},
		Happens: learn.Text{
			EN: "One consumer needed {damage-took}. That is a limit of the program and not of the Stream: a group shares its entries out among its consumers.",
			ZH: "一个消费者用了 {damage-took}。这是程序的限制，不是 Stream 的：消费组会把消息分给组内的消费者。",
		},
		Mend: learn.Text{
			EN: "Two consumers of one group handled {repair-first} and {repair-second}, none twice, in {repair-took}. Several groups each get everything.",
			ZH: "同组两个消费者分别处理 {repair-first} 和 {repair-second} 条，不重复，用时 {repair-took}。多个组则各得全部。",
		},
		Further: []learn.Link{redisDocs("xgroup-create", "Consumer groups", "消费组")},
	}
}
