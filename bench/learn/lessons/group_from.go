package lessons

import (
	"time"

	"queuelab/bench/learn"
)

func groupFrom() learn.Lesson {
	return learn.Lesson{
		Number: 8, Name: "group-from", Topic: learn.Redis,
		Question: learn.Text{
			EN: "Should a consumer group be created from 0 or from $?",
			ZH: "消费组从 0 还是从 $ 创建？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "No matter: a new group is given what nobody has consumed yet.", ZH: "无所谓：新组会得到所有还没人消费的消息。"},
				If: learn.Conditions{"dollar": learn.Is(3), "again": learn.Is(0)}},
			{Text: learn.Text{EN: "From 0: $ skips what waits already. What was acked does not come again.", ZH: "从 0：$ 会跳过已在排队的。确认过的不会再来。"},
				If: learn.Conditions{"dollar": learn.Is(0), "zero": learn.Is(3), "again": learn.Is(0)}},
			{Text: learn.Text{EN: "From 0 at first: $ skips what waits. A group that is created again from 0 gets even what was acked.", ZH: "首次从 0：$ 会跳过已在排队的。但重建时再从 0，连确认过的也会重来。"},
				If: learn.Conditions{"dollar": learn.Is(0), "zero": learn.Is(3), "again": learn.Is(3)}},
		},
		Right: 2,
		Needs: []learn.Need{{Kind: "redis"}},
		Takes: time.Second,
		Try: func(s *learn.Stand) {
			stream, redis := s.Name("orders"), s.Redis()
			deleteAfter(s, stream)
			// read takes what is new to a group.
			read := func(group string) []entry {
				return entries(s, redis, "XREADGROUP", "GROUP", group, "c", "STREAMS", stream, ">")
			}

			s.Step("Three orders wait before there is any group. One is created from $, one from 0.", "还没有任何组，已有三个订单在排队。分别从 $ 和从 0 建组。")
			for _, m := range s.Messages(3) {
				s.Do(redis, "XADD", stream, "*", "order", m.ID)
			}
			s.Do(redis, "XGROUP", "CREATE", stream, "from-end", "$")
			s.Count("dollar", int64(len(read("from-end"))), "of three read by the group from $", "三个里 $ 组读到的")
			s.Do(redis, "XGROUP", "CREATE", stream, "from-start", "0")
			all := read("from-start")
			s.Count("zero", int64(len(all)), "of three read by the group from 0", "三个里 0 组读到的")

			s.Step("That group acks all, is lost, and is created again from 0, as a script at start-up does.", "0 组全部确认后丢失，又被启动脚本从 0 重建。")
			for _, e := range all {
				s.Do(redis, "XACK", stream, "from-start", e.id)
			}
			s.Do(redis, "XGROUP", "DESTROY", stream, "from-start")
			s.Do(redis, "XGROUP", "CREATE", stream, "from-start", "0")
			s.Count("again", int64(len(read("from-start"))), "acked orders read once more", "确认过又被读到的订单")

			s.Step("Created again from the last id that the database has seen, with one new order.", "改为从数据库记下的最后一个 id 重建，另有一个新订单。")
			s.Do(redis, "XGROUP", "DESTROY", stream, "from-start")
			s.Do(redis, "XGROUP", "CREATE", stream, "from-start", all[len(all)-1].id)
			s.Do(redis, "XADD", stream, "*", "order", s.ID+"-4")
			s.Count("from-last", int64(len(read("from-start"))), "read by a group from the last id", "从最后 id 建的组读到的")

			s.Step("The lab's queue: three orders are published before its second group exists.", "本项目的队列：三个订单发布之后，第二个组才出现。")
			queueURL := s.URL("redis-streams")
			s.Publish(s.Open(queueURL), 3)
			late := s.Consumer(s.Open(queueURL + "&group=late"))
			s.Count("lab", int64(len(s.Take(late, 3))), "of three delivered to the late group", "三个里晚到的组收到的")
		},
		Expect: learn.Conditions{"from-last": learn.Is(1), "lab": learn.Is(3)},
		Why: learn.Text{
			EN: "The id given to XGROUP CREATE is where the group's reading begins, and acks belong to the group alone. From $ it begins behind the end and got {dollar} of three waiting orders, from 0 all {zero}. A group that is created again has no memory: from 0 it read {again} acked orders once more, from the last known id only the {from-last} new one.",
			ZH: "XGROUP CREATE 的 id 就是这个组开始读的位置，确认记录也只属于这个组。从 $ 就从末尾之后开始，三个排队的订单得到 {dollar} 个；从 0 则得到全部 {zero} 个。重建的组没有记忆：从 0 会把 {again} 个确认过的订单重读一遍，从已知的最后 id 开始则只读到新的 {from-last} 个。",
		},
		Say: learn.Text{
			EN: "Create it from 0 with MKSTREAM before the first order: $ loses what came before the group. When it must be created again, after a flush or a failover, either start from the last id that the database knows, or from 0 with an idempotent handler.",
			ZH: "在第一个订单之前用 MKSTREAM 从 0 建组：从 $ 建会丢掉建组之前的订单。FLUSHALL 或主从切换后需要重建时，要么从数据库记下的最后 id 开始，要么从 0 重放并依靠幂等。",
		},
		Further: []learn.Link{{Text: learn.Text{EN: "XGROUP CREATE", ZH: "XGROUP CREATE"}, URL: "https://redis.io/docs/latest/commands/xgroup-create/"}},
	}
}
