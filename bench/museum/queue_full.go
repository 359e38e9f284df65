package museum

import (
	"time"

	"queuelab/bench/learn"
)

// takeWithRoom takes a unit only where the queue has room for the order, in one
// step: 1 taken, 0 sold out, -1 no room.
const takeWithRoom = `if redis.call('LLEN', KEYS[2]) >= tonumber(ARGV[1]) then return -1 end
if tonumber(redis.call('GET', KEYS[1])) < 1 then return 0 end
redis.call('LPUSH', KEYS[2], ARGV[2])
redis.call('DECR', KEYS[1])
return 1`

func queueFull() Exhibit {
	return Exhibit{
		Number: 8, Name: "full-after-the-deduction", Found: []string{"001"},
		Idea: learn.Text{
			EN: "Redis takes the unit first; then the order goes into a bounded queue in the process, whose add throws when it is full.",
			ZH: "先在 Redis 扣库存，再把订单放进进程内的有界队列；队列满时 add 抛异常。",
		},
		Needs: []learn.Need{{Kind: "redis"}}, Takes: time.Second,
		Damage: func(s *learn.Stand) {
			redis, stock := s.Redis(), s.Name("stock")
			gone(s, stock)
			s.Do(redis, "SET", stock, 10)
			orders := make(chan string, 2)
			failed := int64(0)
			for range 5 {
				s.Do(redis, "DECR", stock)
				select {
				case orders <- s.ID:
				default:
					failed++ // the buyer sees an error
				}
			}
			taken := 10 - s.Int(redis, "GET", stock)
			s.Count("damage-errors", failed, "of 5 buyers see an error", "5 个买家里看到报错的")
			s.Count("damage-leaked", taken-int64(len(orders)), "units gone without an order", "没有订单却扣掉的库存")
		},
		Repair: func(s *learn.Stand) {
			redis, stock, list := s.Redis(), s.Name("stock2"), s.Name("orders")
			gone(s, stock, list)
			s.Do(redis, "SET", stock, 10)
			refused := int64(0)
			for range 5 {
				if s.Int(redis, "EVAL", takeWithRoom, 2, stock, list, 2, s.ID) == -1 {
					refused++ // politely: come again
				}
			}
			taken := 10 - s.Int(redis, "GET", stock)
			s.Count("repair-refused", refused, "of 5 buyers are told to come again", "5 个买家里被告知稍后再来的")
			s.Count("repair-leaked", taken-s.Int(redis, "LLEN", list), "units gone without an order", "没有订单却扣掉的库存")
		},
		Shows: learn.Conditions{
			"damage-errors": learn.Is(3), "damage-leaked": learn.Is(3), "repair-refused": learn.Is(3), "repair-leaked": learn.Is(0),
		},
		Happens: learn.Text{
			EN: "{damage-errors} of 5 buyers saw an error, and {damage-leaked} units left the stock for nobody: the sale sells too few.",
			ZH: "5 个买家有 {damage-errors} 个报错，{damage-leaked} 件库存凭空消失：少卖。",
		},
		Mend: learn.Text{
			EN: "Ask for room before taking a unit, in the same step: {repair-refused} buyers are told to come again, {repair-leaked} units are lost. The service does so too, with 503 and Retry-After.",
			ZH: "扣库存之前在同一步里先看队列有没有位置：{repair-refused} 人被告知稍后再来，库存丢失 {repair-leaked} 件。服务也这样做，返回 503 和 Retry-After。",
		},
	}
}
