package museum

import (
	"time"

	"queuelab/bench/learn"
)

const takeAnytime = `if tonumber(redis.call('HGET', KEYS[1], 'stock')) < 1 then return 1 end
redis.call('HINCRBY', KEYS[1], 'stock', -1)
redis.call('XADD', KEYS[2], '*', 'order', ARGV[1])
return 0`

// takeInTime looks at the window by the clock of Redis itself, the one clock that
// all instances share.
const takeInTime = `local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local begins, ends = redis.call('HGET', KEYS[1], 'begins'), redis.call('HGET', KEYS[1], 'ends')
if now < tonumber(begins) then return 2 end
if now >= tonumber(ends) then return 3 end
` + takeAnytime

func windowUnchecked() Exhibit {
	// click lets ten buyers click before the sale has begun.
	click := func(s *learn.Stand, name, script string) int64 {
		redis, sale := s.Redis(), s.Name(name+"-sale")
		gone(s, sale)
		key := stream(s, redis, name, 0)
		now := time.Now()
		s.Do(redis, "HSET", sale, "stock", 10, "begins", now.Add(time.Hour).UnixMilli(), "ends", now.Add(2*time.Hour).UnixMilli())
		s.Step("The sale begins in an hour. Ten buyers call the interface now.", "活动一小时后开始，现在就有十个人直接调接口。")
		for range 10 {
			s.Do(redis, "EVAL", script, 2, sale, key, s.ID)
		}
		return s.Int(redis, "XLEN", key)
	}
	return Exhibit{
		Number: 15, Name: "window-no-longer-checked", Found: []string{"001", "000", "003"},
		Idea: learn.Text{
			EN: "Once the order is asynchronous the script checks stock and buyer; the check of the sale window stayed behind in the old code, or was never there.",
			ZH: "改成异步下单后，脚本只查库存和一人一单；检查活动时间的代码留在了旧版本里，或者从来没有。",
		},
		Needs: []learn.Need{{Kind: "redis"}}, Takes: time.Second,
		Damage: func(s *learn.Stand) {
			s.Count("damage-sold", click(s, "orders", takeAnytime), "orders before the sale began", "活动开始前成交的订单")
		},
		Repair: func(s *learn.Stand) {
			s.Count("repair-sold", click(s, "orders2", takeInTime), "orders before the sale began", "活动开始前成交的订单")
		},
		Shows: learn.Conditions{"damage-sold": learn.Is(10), "repair-sold": learn.Is(0)},
		Happens: learn.Text{
			EN: "A button that is grey in the page stops nobody who calls the interface: {damage-sold} of 10 units were sold an hour too early.",
			ZH: "页面上按钮是灰的，拦不住直接调接口的人：提前一小时卖掉 {damage-sold}/10 件。",
		},
		Mend: learn.Text{
			EN: "The script that takes the unit checks the window, by the clock of Redis, which all instances share: {repair-sold} sold.",
			ZH: "由扣库存的脚本检查时间，用 Redis 自己的时钟，所有实例一致：卖出 {repair-sold} 件。",
		},
	}
}
