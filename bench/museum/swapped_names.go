package museum

import (
	"time"

	"queuelab/bench/learn"
)

func swappedNames() Exhibit {
	// recover works off the pending list as often as rounds allow.
	recover := func(s *learn.Stand, name, group, consumer string) (errors, left int64) {
		redis := s.Redis()
		key := stream(s, redis, name, 1)
		_, err := read(s, redis, "XREADGROUP", "GROUP", "g", "c", "COUNT", 1, "STREAMS", key, ">") // in hand, not acked
		s.Must(err)
		for range rounds {
			es, err := read(s, redis, "XREADGROUP", "GROUP", group, consumer, "COUNT", 1, "STREAMS", key, "0")
			if err != nil {
				errors++
				continue
			}
			if len(es) == 0 {
				break
			}
			s.Do(redis, "XACK", key, group, es[0].id)
		}
		return errors, pending(s, redis, key)
	}
	return Exhibit{
		Number: 5, Name: "swapped-names", Found: []string{"001"},
		Idea: learn.Text{
			EN: "The recovery of pending orders names consumer and group in the wrong order; both are strings, so it compiles.",
			ZH: "恢复待确认订单时把消费者名和组名写反了；都是字符串，编译照过。",
		},
		Needs: []learn.Need{{Kind: "redis"}}, Takes: time.Second,
		Damage: func(s *learn.Stand) {
			errors, left := recover(s, "orders", "c", "g")
			s.Count("damage-errors", errors, "errors in 100 rounds", "100 轮里的报错")
			s.Count("damage-left", left, "orders stuck, of 1", "卡住的订单，共 1 条")
		},
		Repair: func(s *learn.Stand) {
			errors, left := recover(s, "orders2", "g", "c")
			s.Count("repair-errors", errors, "errors", "报错")
			s.Count("repair-left", left, "orders stuck, of 1", "卡住的订单，共 1 条")
		},
		Shows: learn.Conditions{
			"damage-errors": learn.Is(rounds), "damage-left": learn.Is(1), "repair-errors": learn.Is(0), "repair-left": learn.Is(0),
		},
		Happens: learn.Text{
			EN: "Every round ends in NOGROUP ({damage-errors} of 100), and {damage-left} order is stuck. Only the recovery has the mistake, so that it shows first when something else has gone wrong.",
			ZH: "每一轮都报 NOGROUP（100 轮 {damage-errors} 次），卡住 {damage-left} 条订单。错只在恢复逻辑里，平时看不出来，出事时才发作。",
		},
		Mend: learn.Text{
			EN: "The names are written once, in a type that knows which is which, and recovery is tested by a kill: {repair-left} stuck.",
			ZH: "名字只写一处、各有类型，并用一次真实的 kill 测试恢复：卡住 {repair-left} 条。",
		},
	}
}
