package museum

import (
	"time"

	"queuelab/bench/learn"
)

func zeroZero() Exhibit {
	return Exhibit{
		Number: 13, Name: "zero-zero-reads-all", Found: []string{"004"},
		Idea: learn.Text{
			EN: "XREADGROUP with the id 0-0 reads everything that is pending in the group, and then what is new.",
			ZH: "XREADGROUP 用 0-0 会先读出组里所有待确认的消息，再读新消息。",
		},
		Needs: []learn.Need{{Kind: "redis"}}, Takes: time.Second,
		Damage: func(s *learn.Stand) {
			redis := s.Redis()
			key := stream(s, redis, "orders", 2)
			group(s, redis, "c1", key, ">", 2)
			send(s, redis, key, 1)
			s.Step("Two orders are pending under c1, one is new. c2 and c1 read from 0-0.", "两条挂在 c1 名下，一条是新的。c2 和 c1 分别从 0-0 读。")
			s.Count("damage-other", int64(len(group(s, redis, "c2", key, "0-0", 10))), "of 3 orders read by c2", "c2 读到的，共 3 条")
			s.Count("damage-own", int64(len(group(s, redis, "c1", key, "0-0", 10))), "of 3 orders read by c1, its own", "c1 读到的（自己名下），共 3 条")
		},
		Repair: func(s *learn.Stand) {
			redis := s.Redis()
			key := stream(s, redis, "orders2", 2)
			group(s, redis, "c1", key, ">", 2)
			send(s, redis, key, 1)
			claimed, _ := s.Do(redis, "XAUTOCLAIM", key, "g", "c2", 0, "0-0").([]any)
			taken, _ := claimed[1].([]any)
			s.Count("repair-read", int64(len(taken)+len(group(s, redis, "c2", key, ">", 10))), "of 3 orders with XAUTOCLAIM and >", "XAUTOCLAIM 加 > 得到的，共 3 条")
		},
		Shows: learn.Conditions{"damage-other": learn.Is(0), "damage-own": learn.Is(2), "repair-read": learn.Is(3)},
		Happens: learn.Text{
			EN: "Any id but > reads the consumer's own pending list and nothing else: c2 got {damage-other}, c1 its own {damage-own}, and nobody the new one.",
			ZH: "除了 >，任何 ID 都只读这个消费者自己的待确认列表：c2 得到 {damage-other} 条，c1 得到自己的 {damage-own} 条，新消息谁也没读到。",
		},
		Mend: learn.Text{
			EN: "XAUTOCLAIM takes over what others hold, and > reads what is new: {repair-read} of 3.",
			ZH: "别人名下的用 XAUTOCLAIM 接管，新的用 > 读：3 条得到 {repair-read} 条。",
		},
		Further: []learn.Link{redisDocs("xreadgroup", "XREADGROUP and its ids", "XREADGROUP 的 ID")},
	}
}
