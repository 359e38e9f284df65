package museum

import (
	"time"

	"queuelab/bench/learn"
)

func continueLoop() Exhibit {
	// consume recovers one pending order, while three new ones come.
	consume := func(s *learn.Stand, name string, leaves bool) (recovered, handled int64) {
		redis := s.Redis()
		key := stream(s, redis, name, 1)
		group(s, redis, "c1", key, ">", 1) // its handling failed: it is pending
		send(s, redis, key, 3)
		from := "0"
		for range rounds {
			es := group(s, redis, "c1", key, from, 1)
			switch {
			case len(es) == 0 && from == "0" && leaves:
				from = ">"
			case len(es) == 0:
			default:
				s.Do(redis, "XACK", key, "g", es[0].id)
				if from == "0" {
					recovered++
				} else {
					handled++
				}
			}
		}
		return recovered, handled
	}
	return Exhibit{
		Number: 6, Name: "continue-not-break", Found: []string{"001"},
		Idea: learn.Text{
			EN: "The loop over pending orders goes on with its next round when there is nothing pending any more.",
			ZH: "处理待确认订单的循环，读到空时写成了 continue。",
		},
		Needs: []learn.Need{{Kind: "redis"}}, Takes: time.Second,
		Damage: func(s *learn.Stand) {
			recovered, handled := consume(s, "orders", false)
			s.Count("damage-recovered", recovered, "pending orders recovered, of 1", "恢复的待确认订单，共 1 条")
			s.Count("damage-handled", handled, "new orders handled, of 3, in 100 rounds", "100 轮里处理的新订单，共 3 条")
		},
		Repair: func(s *learn.Stand) {
			recovered, handled := consume(s, "orders2", true)
			s.Count("repair-recovered", recovered, "pending orders recovered, of 1", "恢复的待确认订单，共 1 条")
			s.Count("repair-handled", handled, "new orders handled, of 3", "处理的新订单，共 3 条")
		},
		Shows: learn.Conditions{
			"damage-recovered": learn.Is(1), "damage-handled": learn.Is(0), "repair-recovered": learn.Is(1), "repair-handled": learn.Is(3),
		},
		Happens: learn.Text{
			EN: "After one failure the consumer never reads anything new: {damage-handled} of 3, in 100 rounds of a busy loop.",
			ZH: "出过一次错之后，消费者再也不读新消息：空转 100 轮，3 条新订单处理了 {damage-handled} 条。",
		},
		Mend: learn.Text{
			EN: "An empty pending list ends the recovery: {repair-handled} of 3 new orders.",
			ZH: "待确认列表为空就退出恢复循环：3 条新订单处理 {repair-handled} 条。",
		},
	}
}
