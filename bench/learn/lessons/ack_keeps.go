package lessons

import (
	"time"

	"queuelab/bench/learn"
)

func ackKeeps() learn.Lesson {
	const orders, node = 500, 100 // Redis trims whole nodes, of 100 entries each
	return learn.Lesson{
		Number: 6, Name: "xack-keeps", Topic: learn.Redis,
		Question: learn.Text{
			EN: "Is an entry still in the Stream after XACK? Does memory grow?",
			ZH: "XACK 之后消息还在吗？内存会一直涨吗？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "XACK deletes it.", ZH: "XACK 会把它删掉。"},
				If: learn.Conditions{"after-ack": learn.Is(2)}},
			{Text: learn.Text{EN: "It stays, and XDEL only marks it: the length does not change.", ZH: "还在；XDEL 也只是打标记，长度不变。"},
				If: learn.Conditions{"after-ack": learn.Is(3), "after-del": learn.Is(3)}},
			{Text: learn.Text{EN: "It stays until it is deleted or trimmed: without that the Stream grows for ever.", ZH: "还在，直到被删除或裁剪；不裁剪就会一直涨。"},
				If: learn.Conditions{"after-ack": learn.Is(3), "after-del": learn.Is(2)}},
		},
		Right: 2,
		Needs: []learn.Need{{Kind: "redis"}},
		Takes: 2 * time.Second,
		Try: func(s *learn.Stand) {
			stream, redis := s.Name("orders"), s.Redis()
			deleteAfter(s, stream)

			s.Step("Three orders are read by a group, and one is acked.", "一个组读走三个订单，确认其中一个。")
			for _, m := range s.Messages(3) {
				s.Do(redis, "XADD", stream, "*", "order", m.ID)
			}
			s.Do(redis, "XGROUP", "CREATE", stream, "g", "0")
			es := entries(s, redis, "XREADGROUP", "GROUP", "g", "c", "STREAMS", stream, ">")
			s.Count("before", s.Int(redis, "XLEN", stream), "length before", "确认之前的长度")
			s.Do(redis, "XACK", stream, "g", es[0].id)
			s.Count("after-ack", s.Int(redis, "XLEN", stream), "length after XACK", "XACK 之后的长度")

			s.Step("XDEL deletes the acked one.", "用 XDEL 删除已确认的那一个。")
			s.Do(redis, "XDEL", stream, es[0].id)
			s.Count("after-del", s.Int(redis, "XLEN", stream), "length after XDEL", "XDEL 之后的长度")

			// work publishes and acks so many orders, and returns the key of the Stream.
			work := func(name string, params ...string) string {
				q := s.Queue("redis-streams", append(params, "claim=1s", "prefetch=100")...)
				c := s.Consumer(q)
				s.Publish(q, orders)
				s.Must(c.Ack(s.Context(), s.Take(c, orders)...))
				return "stream:{" + s.Name(name) + "}"
			}
			s.Step("500 orders through a queue that never trims. All are acked.", "500 个订单经过一个从不裁剪的队列，全部确认。")
			key := work("q1", "trim=0s")
			s.Count("kept", s.Int(redis, "XLEN", key), "entries left of 500 acked orders", "500 个已确认订单剩下的条目")
			s.Figure("kept-memory", float64(s.Int(redis, "MEMORY", "USAGE", key, "SAMPLES", 0))/1024, "kB", learn.Text{EN: "memory of them", ZH: "它们占的内存"})

			s.Step("500 through the queue as the service has it: it trims what every group has acked.", "500 个订单经过服务所用的队列：它会裁剪所有组都已确认的条目。")
			key = work("q2", "trim=500ms")
			s.Eventually("the acked entries to be trimmed", 10*time.Second, func() bool {
				return s.RedisUnseen().XLen(s.Context(), key).Val() <= node
			})
			s.Count("trimmed", s.Int(redis, "XLEN", key), "entries left of 500 acked orders, trimmed", "裁剪后 500 个已确认订单剩下的条目")
		},
		Expect: learn.Conditions{"before": learn.Is(3), "kept": learn.Is(orders), "kept-memory": learn.AtLeast(5), "trimmed": learn.AtMost(node)},
		Why: learn.Text{
			EN: "XACK only takes the entry off the group's pending list, since other groups may still want it: the length was {before} before and {after-ack} after. XDEL does remove it, and {after-del} were left. So {kept} acked orders went on using {kept-memory}, where nobody trimmed. Our queue trims below the oldest entry that any group still needs, in whole nodes of 100, and that left {trimmed} of as many.",
			ZH: "XACK 只是把条目从组的待确认列表里划掉，因为别的组可能还要读：确认前长度 {before}，确认后 {after-ack}。XDEL 才真正删除，删后剩 {after-del}。所以没人裁剪时，{kept} 个已确认的订单仍占着 {kept-memory}。我们的队列会把所有组都不再需要的部分裁掉（以 100 条的整节点为单位），同样多的订单只剩 {trimmed} 条。",
		},
		Say: learn.Text{
			EN: "A Stream is a log: XACK moves a group on and frees nothing. Trim with XTRIM MINID only what every group is done with: below its oldest pending entry, or below what it has not read yet where none is pending. MAXLEN also bounds memory, but drops orders that nobody has handled.",
			ZH: "Stream 是一份日志：XACK 只推进消费组，不释放内存。用 XTRIM MINID 裁到每个组最老的待确认条目之前；没有待确认条目的组，只裁到它读过的位置。MAXLEN 也能限制内存，但会丢掉还没处理的订单。",
		},
		Further: []learn.Link{{Text: learn.Text{EN: "XTRIM", ZH: "XTRIM"}, URL: "https://redis.io/docs/latest/commands/xtrim/"}},
	}
}
