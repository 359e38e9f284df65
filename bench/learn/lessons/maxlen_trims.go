package lessons

import (
	"errors"
	"time"

	"queuelab/backends/redisstreams"
	"queuelab/bench/fault"
	"queuelab/bench/learn"
	"queuelab/bench/node"
)

func maxlenTrims() learn.Lesson {
	return learn.Lesson{
		Number: 7, Name: "maxlen-trims-pending", Topic: learn.Redis,
		Question: learn.Text{
			EN: "Does MAXLEN delete entries that were delivered and not acked yet?",
			ZH: "MAXLEN 会不会删掉还没 ACK 的消息？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "No: what is pending is protected.", ZH: "不会：待确认的条目受保护。"},
				If: learn.Conditions{"bodies": learn.Is(5)}},
			{Text: learn.Text{EN: "Yes, with its note in the pending list.", ZH: "会，连同 PEL 里的记录一起删。"},
				If: learn.Conditions{"bodies": learn.Is(2), "pending": learn.Is(2)}},
			{Text: learn.Text{EN: "Yes, and the pending list goes on naming orders that are gone.", ZH: "会，而 PEL 里还留着已经没了的订单号。"},
				If: learn.Conditions{"bodies": learn.Is(2), "pending": learn.Is(5)}},
		},
		Right: 2,
		Needs: []learn.Need{{Kind: "redis"}},
		Takes: 3 * time.Second,
		Try: func(s *learn.Stand) {
			stream, redis := s.Name("orders"), s.Redis()
			deleteAfter(s, stream)

			s.Step("Five orders, all read by c1 and none acked. Then the Stream is trimmed to two.", "五个订单全部被 c1 读走，一个都没确认，然后把 Stream 裁到两个。")
			for _, m := range s.Messages(5) {
				s.Do(redis, "XADD", stream, "*", "order", m.ID)
			}
			s.Do(redis, "XGROUP", "CREATE", stream, "g", "0")
			entries(s, redis, "XREADGROUP", "GROUP", "g", "c1", "STREAMS", stream, ">")
			s.Count("trimmed", s.Int(redis, "XTRIM", stream, "MAXLEN", 2), "trimmed though pending", "还没确认就被裁掉的")
			pending := s.Do(redis, "XPENDING", stream, "g").([]any)
			s.Count("pending", pending[0].(int64), "still in the pending list", "PEL 里仍有的")

			s.Step("c1 reads its own pending entries again, as it does after a restart.", "c1 重新读自己的待确认条目，就像重启之后那样。")
			bodies := 0
			for _, e := range entries(s, redis, "XREADGROUP", "GROUP", "g", "c1", "STREAMS", stream, "0") {
				if e.fields != nil {
					bodies++
				}
			}
			s.Count("bodies", int64(bodies), "of them still have a body", "其中还有内容的")

			s.Step("XAUTOCLAIM by c2 names those that are gone, and forgets them.", "c2 执行 XAUTOCLAIM：报告已消失的 id，并从 PEL 中抹掉。")
			claimed := s.Do(redis, "XAUTOCLAIM", stream, "g", "c2", 0, "0").([]any)
			s.Count("claimed", int64(len(entriesOf(claimed[1]))), "claimed by c2", "c2 认领到的")
			s.Count("deleted", int64(len(claimed[2].([]any))), "that XAUTOCLAIM reports as deleted", "XAUTOCLAIM 报告已删除的")

			s.Step("The lab's queue with maxlen=2: a consumer is killed with two orders in its hand, and three more are published. Then another consumer comes.",
				"本项目的队列设 maxlen=2：消费者手里拿着两个订单时被杀，随后又发布三个，再来另一个消费者。")
			bounded := s.URL("redis-streams", "claim=1s", "maxlen=2", "prefetch=10")
			q := s.Open(bounded)
			s.Produce(bounded, node.Produce{Count: 2}).Produced()
			s.Consume(bounded, node.Consume{CrashPoint: fault.MidHandle, CrashAtNth: 1}).Struck()
			s.Produce(bounded, node.Produce{Count: 3}).Produced()
			heir := s.Consumer(q)
			got, told := 0, 0
			s.Eventually("the lost entries to be told of", 10*time.Second, func() bool {
				ds, err := heir.Receive(s.Context(), 10)
				got += len(ds)
				var gone *redisstreams.GoneError
				if errors.As(err, &gone) {
					told += gone.Entries
				} else {
					s.Must(err)
				}
				return told > 0 && got == 2
			})
			s.Count("got", int64(got), "of five accepted orders delivered to the heir", "五个已接收的订单里，继任者收到的")
			s.Count("told", int64(told), "that it is told are gone", "它被告知已消失的")
		},
		Expect: learn.Conditions{
			"trimmed": learn.Is(3), "claimed": learn.Is(2), "deleted": learn.Is(3), "got": learn.Is(2), "told": learn.Is(2),
		},
		Why: learn.Text{
			EN: "MAXLEN counts entries and looks at no group: {trimmed} went although nobody had acked them. The pending list kept all {pending} ids, of which {bodies} still had a body, and XAUTOCLAIM gave {claimed} and named {deleted} as deleted. In our queue with maxlen=2 an heir got {got} of five accepted orders and was told of {told} more, while the one that nobody had read vanished without a word.",
			ZH: "MAXLEN 只数条目，不看消费组：{trimmed} 条没人确认过就被裁掉了。PEL 里 {pending} 个 id 都还在，只有 {bodies} 个还有内容；XAUTOCLAIM 交出 {claimed} 个，并报告 {deleted} 个已删除。在 maxlen=2 的队列里，五个已接收的订单继任者收到 {got} 个，被告知 {told} 个已消失，而没人读过的那一个悄无声息地没了。",
		},
		Say: learn.Text{
			EN: "MAXLEN trims by length only and drops orders that are pending or unread; the id stays in the PEL with an empty body. For orders trim by MINID below the oldest entry that is pending or unread, and bound the backlog at the door. A consumer must treat a nil body as a lost order and reconcile, and never crash on it.",
			ZH: "MAXLEN 只按长度裁剪，待确认的、未读的订单都会被丢，PEL 里只剩空壳 id。订单流要用 MINID 裁到最老的待确认或未读条目之前，积压上限放在入口控制。消费者读到空内容要当作丢单去对账，不能崩溃。",
		},
		Further: []learn.Link{{Cell: "redis-streams/maxlen backlog"}},
	}
}
