package museum

import (
	"time"

	"queuelab/bench/learn"
)

func deletedIsGone() Exhibit {
	return Exhibit{
		Number: 14, Name: "xdel-keeps-the-length", Found: []string{"004"},
		Idea: learn.Text{
			EN: "XDEL only marks an entry, so that the stream stays as long as it was: trust XLEN to count what was sent.",
			ZH: "XDEL 只是打个标记，流的长度不变：用 XLEN 来数发过多少条。",
		},
		Needs: []learn.Need{{Kind: "redis"}},
		Takes: time.Second,
		Damage: func(s *learn.Stand) {
			redis, stream := s.Redis(), s.Name("orders")
			s.After(func() error { return s.RedisUnseen().Del(s.Context(), stream).Err() })
			var last any
			for range 3 {
				last = s.Do(redis, "XADD", stream, "*", "order", s.ID)
			}
			s.Do(redis, "XDEL", stream, last)
			s.Count("damage-counted", s.Int(redis, "XLEN", stream), "orders by XLEN, of 3 sent and 1 deleted", "XLEN 数到的订单（发了 3 条，删了 1 条）")
		},
		Repair: func(s *learn.Stand) {
			redis, stream := s.Redis(), s.Name("orders2")
			s.After(func() error { return s.RedisUnseen().Del(s.Context(), stream).Err() })
			var last any
			for range 3 {
				last = s.Do(redis, "XADD", stream, "*", "order", s.ID)
			}
			s.Do(redis, "XDEL", stream, last)
			info := s.Do(redis, "XINFO", "STREAM", stream)
			s.Count("repair-counted", number(s, info, "entries-added"), "orders by entries-added of XINFO STREAM", "XINFO STREAM 的 entries-added 数到的订单")
		},
		Shows: learn.Conditions{"damage-counted": learn.Is(2), "repair-counted": learn.Is(3)},
		Happens: learn.Text{
			EN: "XDEL takes the entry off the stream: XLEN says {damage-counted}, and whoever compares it with what was sold finds an order too few.",
			ZH: "XDEL 会把条目从流里去掉：XLEN 变成 {damage-counted}，拿它和卖出的数量对账就少了一单。",
		},
		Mend: learn.Text{
			EN: "entries-added counts all that ever came ({repair-counted}); orders are counted in the database.",
			ZH: "entries-added 记录累计进入的条数（{repair-counted}）；订单数量以数据库为准。",
		},
		Further: []learn.Link{{Text: learn.Text{EN: "XDEL", ZH: "XDEL"}, URL: "https://redis.io/docs/latest/commands/xdel/"}},
	}
}

// number finds a number in an answer that is a map, or a list of names and values.
func number(s *learn.Stand, answer any, name string) int64 {
	switch m := answer.(type) {
	case map[any]any:
		if n, ok := m[name].(int64); ok {
			return n
		}
	case []any:
		for i := 0; i+1 < len(m); i += 2 {
			if n, ok := m[i+1].(int64); ok && m[i] == name {
				return n
			}
		}
	}
	s.Fail("the answer has no number %s: %v", name, answer)
	return 0
}
