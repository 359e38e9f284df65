package museum

import (
	"time"

	"queuelab/bench/learn"
)

func groupDollar() Exhibit {
	return Exhibit{
		Number: 1, Name: "dollar-in-a-group", Found: []string{"000"},
		Idea: learn.Text{
			EN: "XREADGROUP with the id $ reads on from the next message that nobody has consumed.",
			ZH: "XREADGROUP 用 $ 作 ID，就从下一条未消费的消息读起。",
		},
		Needs: []learn.Need{{Kind: "redis"}}, Takes: time.Second,
		Damage: func(s *learn.Stand) {
			redis := s.Redis()
			key := stream(s, redis, "orders", 3)
			es, err := read(s, redis, "XREADGROUP", "GROUP", "g", "c1", "COUNT", 10, "STREAMS", key, "$")
			refused := int64(0)
			if err != nil {
				refused = 1
			}
			s.Count("damage-refused", refused, "reads that Redis refuses", "被 Redis 拒绝的读取")
			s.Count("damage-read", int64(len(es)), "orders read, of 3", "读到的订单，共 3 条")
		},
		Repair: func(s *learn.Stand) {
			redis := s.Redis()
			key := stream(s, redis, "orders2", 3)
			s.Count("repair-read", int64(len(group(s, redis, "c1", key, ">", 10))), "orders read with >, of 3", "用 > 读到的订单，共 3 条")
		},
		Shows: learn.Conditions{"damage-refused": learn.Is(1), "damage-read": learn.Is(0), "repair-read": learn.Is(3)},
		Happens: learn.Text{
			EN: "Redis refuses it: $ has no meaning for a group, and {damage-read} of 3 orders were read. It belongs to XREAD, where it means: only what comes after now.",
			ZH: "Redis 直接报错：$ 对消费组没有意义，3 条订单读到 {damage-read} 条。$ 属于 XREAD，意思是只要此刻之后的。",
		},
		Mend: learn.Text{
			EN: "The id > gives a group what none of its consumers was given yet: {repair-read} of 3.",
			ZH: "用 > 读组内还没有分给任何消费者的消息：3 条读到 {repair-read} 条。",
		},
		Further: []learn.Link{redisDocs("xreadgroup", "XREADGROUP and its ids", "XREADGROUP 的 ID")},
	}
}
