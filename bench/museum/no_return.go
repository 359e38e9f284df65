package museum

import (
	"time"

	"queuelab/bench/learn"
)

const takeAndSay = `if tonumber(redis.call('GET', KEYS[1])) < 1 then return 1 end
redis.call('DECR', KEYS[1])
redis.call('XADD', KEYS[2], '*', 'order', ARGV[1])
`

func noReturn() Exhibit {
	// sell is one click, and what the buyer is told.
	sell := func(s *learn.Stand, name, script string) (failed, left, queued int64) {
		redis, stock := s.Redis(), s.Name(name+"-stock")
		gone(s, stock)
		key := stream(s, redis, name, 0)
		s.Do(redis, "SET", stock, 5)
		answer := s.Do(redis, "EVAL", script, 2, stock, key, s.ID)
		if code, ok := answer.(int64); !ok || code != 0 { // a null, where a number is wanted
			failed = 1
		}
		return failed, s.Int(redis, "GET", stock), s.Int(redis, "XLEN", key)
	}
	return Exhibit{
		Number: 10, Name: "no-return", Found: []string{"003"},
		Idea: learn.Text{
			EN: "The script returns a code for each refusal, and for success it just ends.",
			ZH: "脚本对每种拒绝都返回代码，成功时却没有 return。",
		},
		Needs: []learn.Need{{Kind: "redis"}}, Takes: time.Second,
		Damage: func(s *learn.Stand) {
			failed, left, queued := sell(s, "orders", takeAndSay)
			s.Count("damage-failed", failed, "buyers told that it failed, of 1", "被告知失败的买家，共 1 人")
			s.Count("damage-left", left, "units left of 5", "5 件里剩下的")
			s.Count("damage-queued", queued, "orders queued all the same", "仍然入队的订单")
		},
		Repair: func(s *learn.Stand) {
			failed, left, queued := sell(s, "orders2", takeAndSay+"return 0")
			s.Count("repair-failed", failed, "buyers told that it failed", "被告知失败的买家")
			s.Count("repair-left", left, "units left of 5", "5 件里剩下的")
			s.Count("repair-queued", queued, "orders queued", "入队的订单")
		},
		Shows: learn.Conditions{
			"damage-failed": learn.Is(1), "damage-left": learn.Is(4), "damage-queued": learn.Is(1),
			"repair-failed": learn.Is(0), "repair-left": learn.Is(4), "repair-queued": learn.Is(1),
		},
		Happens: learn.Text{
			EN: "Without a return the answer is a null, which a caller that wants a number cannot use: {damage-failed} buyer is told that it failed, with {damage-left} of 5 units left and {damage-queued} order on its way.",
			ZH: "没有 return，结果就是空值，等着数字的调用方直接出错：{damage-failed} 个买家被告知失败，库存却剩 {damage-left}/5，{damage-queued} 条订单已经在路上。",
		},
		Mend: learn.Text{
			EN: "Every branch returns a code of its own, and a caller that meets an unknown answer calls it unknown: {repair-failed} told that it failed.",
			ZH: "每个分支都返回明确的代码；调用方遇到不认识的结果要当作“未知”，而不是失败：误报 {repair-failed} 人。",
		},
	}
}
