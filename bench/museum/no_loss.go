package museum

import (
	"time"

	"queuelab/bench/fault"
	"queuelab/bench/learn"
	"queuelab/bench/ledger"
	"queuelab/bench/node"
)

func absolutelyNoLoss() Exhibit {
	return Exhibit{
		Number: 12, Name: "absolutely-no-loss", Found: []string{"002"},
		Idea: learn.Text{
			EN: "With a consumer group and acks not a single message can be lost: what was not acked stays.",
			ZH: "用了消费组和 ACK 就绝对不丢：没确认的都还在。",
		},
		Needs: []learn.Need{{Kind: "redis"}}, Takes: 4 * time.Second,
		Damage: func(s *learn.Stand) {
			redis := s.Redis()
			key := stream(s, redis, "orders", 3)
			s.Step("Consumer c1 takes an order and is never seen again. c2 goes on reading.", "消费者 c1 取走一条后再也没有回来，c2 继续读。")
			group(s, redis, "c1", key, ">", 1)
			handled := int64(0)
			for range rounds {
				for _, e := range group(s, redis, "c2", key, ">", 1) {
					s.Do(redis, "XACK", key, "g", e.id)
					handled++
				}
			}
			s.Count("damage-handled", handled, "of 3 orders handled, in 100 rounds", "100 轮里处理的订单，共 3 条")
			s.Count("damage-stuck", pending(s, redis, key), "pending under a dead name", "挂在死者名下的")
		},
		Repair: func(s *learn.Stand) {
			url := s.URL("redis-streams", "claim=1s")
			s.Open(url) // to be deleted in the end
			s.Step("A real consumer process kills itself with an order in hand; a second one takes over.", "真实的消费者进程手里拿着订单自杀，另一个进程接手。")
			victim := s.Consume(url, node.Consume{CrashPoint: fault.OnReceive, CrashAtNth: 1})
			s.Produce(url, node.Produce{Count: 3, Rate: 100}).Produced()
			victim.Struck()
			s.Consume(url, node.Consume{})
			count := func(e ledger.Event) (n int64) {
				seen := map[ledger.ID]bool{}
				for _, r := range s.Records() {
					if r.Event == e && !seen[r.ID()] {
						seen[r.ID()] = true
						n++
					}
				}
				return n
			}
			s.Eventually("the orders of the dead to be handled", 15*time.Second, func() bool { return count(ledger.Effect) == 3 })
			s.Count("repair-handled", count(ledger.Effect), "of 3 orders handled", "处理的订单，共 3 条")
		},
		Shows: learn.Conditions{"damage-handled": learn.Is(2), "damage-stuck": learn.Is(1), "repair-handled": learn.Is(3)},
		Happens: learn.Text{
			EN: "Nothing is deleted, and yet nobody ever sees it: {damage-handled} of 3 orders were handled, and {damage-stuck} is pending under a name that is dead. The stream itself is lost with Redis, as far as its persistence allows.",
			ZH: "确实没删，但也没人再看到它：3 条处理了 {damage-handled} 条，{damage-stuck} 条挂在死者名下。而且 Redis 自己丢数据时，流也一起丢。",
		},
		Mend: learn.Text{
			EN: "Somebody must claim what the dead hold, count the attempts and give up in the end: {repair-handled} of 3.",
			ZH: "必须有人认领死者的消息、计数、最终转入死信：3 条处理 {repair-handled} 条。",
		},
		Further: []learn.Link{redisDocs("xautoclaim", "XAUTOCLAIM", "XAUTOCLAIM")},
	}
}
