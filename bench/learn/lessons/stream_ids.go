package lessons

import (
	"strings"
	"time"

	"queuelab/bench/learn"
)

func streamIDs() learn.Lesson {
	return learn.Lesson{
		Number: 5, Name: "stream-ids", Topic: learn.Redis,
		Question: learn.Text{
			EN: "XREADGROUP with >, 0 and $: what does each of them read?",
			ZH: "XREADGROUP 里 >、0、$ 有什么区别？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "> reads new entries, 0 all that are pending in the group and then the new ones, $ the latest.", ZH: "> 读新条目；0 读组内全部待确认的以及之后的新条目；$ 读最新的。"},
				If: learn.Conditions{"own-0": learn.AtLeast(3)}},
			{Text: learn.Text{EN: "> reads new entries, 0 a consumer's own pending ones, $ what comes from now on.", ZH: "> 读新条目；0 读自己名下待确认的；$ 读此后到来的。"},
				If: learn.Conditions{"own-0": learn.Is(2), "other-0": learn.Is(0), "new": learn.Is(1), "dollar-refused": learn.Is(0)}},
			{Text: learn.Text{EN: "> reads new entries, 0 a consumer's own pending ones, and $ is refused.", ZH: "> 读新条目；0 读自己名下待确认的；$ 会报错。"},
				If: learn.Conditions{"own-0": learn.Is(2), "other-0": learn.Is(0), "new": learn.Is(1), "dollar-refused": learn.Is(1)}},
		},
		Right: 2,
		Needs: []learn.Need{{Kind: "redis"}},
		Takes: time.Second,
		Try: func(s *learn.Stand) {
			stream, redis := s.Name("orders"), s.Redis()
			deleteAfter(s, stream)
			read := func(consumer, id string, count int) int64 {
				return int64(len(entries(s, redis, "XREADGROUP", "GROUP", "g", consumer, "COUNT", count, "STREAMS", stream, id)))
			}

			s.Step("Three orders. Consumer c1 reads two with >, and acks none.", "三个订单。消费者 c1 用 > 读两个，不确认。")
			for _, m := range s.Messages(3) {
				s.Do(redis, "XADD", stream, "*", "order", m.ID)
			}
			s.Do(redis, "XGROUP", "CREATE", stream, "g", "0")
			s.Count("first", read("c1", ">", 2), "read by c1 with >", "c1 用 > 读到")

			s.Step("With 0, by c1 and by c2. One order has never been delivered.", "c1 和 c2 分别用 0 读。此时还有一个订单从未投递。")
			s.Count("own-0", read("c1", "0", 10), "read by c1 with 0", "c1 用 0 读到")
			s.Count("other-0", read("c2", "0", 10), "read by c2 with 0", "c2 用 0 读到")

			s.Step("With > by c2.", "c2 用 > 读。")
			s.Count("new", read("c2", ">", 10), "read by c2 with >", "c2 用 > 读到")

			s.Step("With $.", "用 $ 读。")
			refused := int64(0)
			if _, err := s.Ask(redis, "XREADGROUP", "GROUP", "g", "c1", "STREAMS", stream, "$"); err != nil {
				if !strings.Contains(err.Error(), "meaningless") {
					s.Must(err)
				}
				refused = 1
			}
			s.Count("dollar-refused", refused, "reads with $ that Redis refused", "被 Redis 拒绝的 $ 读取")
		},
		Expect: learn.Conditions{"first": learn.Is(2)},
		Why: learn.Text{
			EN: "> means entries that no consumer of the group was ever given: c1 got {first} of three and c2 the remaining {new}. Any other id reads the history of this consumer: 0 gave c1 its {own-0} pending entries, none of the new ones, and c2 {other-0}. $ would mean whatever comes next, which a group remembers by itself, so that Redis refuses it.",
			ZH: "> 表示组里从未投递给任何人的条目：三个里 c1 拿到 {first} 个，c2 拿到剩下的 {new} 个。其他 id 读的都是这个消费者自己的历史：0 让 c1 读到名下待确认的 {own-0} 条，不含新条目，c2 读到 {other-0} 条。$ 表示“此后到来的”，而这由组自己记着，所以 Redis 直接报错。",
		},
		Say: learn.Text{
			EN: "A consumer reads 0 once when it starts, to finish its own pending entries, and then only >. That needs the same name after a restart, and two instances with one name share, and repeat, each other's pending entries. Those of a dead consumer come by XAUTOCLAIM, never by 0.",
			ZH: "消费者启动时先用 0 把自己名下没确认的处理完，之后只用 >。前提是重启后名字不变；两个实例用同一个名字，会互相读到、重复处理对方的待确认条目。别人死后留下的要靠 XAUTOCLAIM，用 0 读不到。",
		},
		Further: []learn.Link{{Text: learn.Text{EN: "XREADGROUP", ZH: "XREADGROUP"}, URL: "https://redis.io/docs/latest/commands/xreadgroup/"}},
	}
}
