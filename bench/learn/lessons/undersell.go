package lessons

import (
	"sync/atomic"
	"time"

	"queuelab/app/sale"
	"queuelab/bench/learn"
	"queuelab/bench/proxy"
)

// takeThenAsk takes the unit first, and then looks whether the buyer has one.
const takeThenAsk = `if tonumber(redis.call('GET', KEYS[1])) < 1 then return 'sold out' end
redis.call('DECR', KEYS[1])
if redis.call('SADD', KEYS[2], ARGV[1]) == 0 then return 'you have one' end
return 'ok'`

func undersell() learn.Lesson {
	return learn.Lesson{
		Number: 12, Name: "undersell", Topic: learn.Admission,
		Question: learn.Text{
			EN: "How does a sale sell too few? Ten units; one buyer clicks ten times, nine others once. The script takes a unit, and then looks whether the buyer has one already.",
			ZH: "少卖是怎么产生的？库存 10 件，一个买家连点十次，另外九人各点一次；脚本先扣库存，再判断是否重复购买。",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Ten are sold: each second click is refused.", ZH: "卖出 10 件：重复点击都被拒绝了。"},
				If: learn.Conditions{"naive-sold": learn.Is(10)}},
			{Text: learn.Text{EN: "One: each of the ten clicks takes a unit, and the nine others find none.", ZH: "只卖 1 件：十次点击各扣掉一件，另外九人买不到。"},
				If: learn.Conditions{"naive-sold": learn.Is(1)}},
			{Text: learn.Text{EN: "Some, by chance: it depends on who comes when.", ZH: "不一定：要看先来后到。"},
				If: learn.Conditions{"naive-sold": learn.Between(2, 9)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis"}, {Kind: "postgres"}},
		Takes: 2 * time.Second,
		Try: func(s *learn.Stand) {
			redis := s.Redis()
			left, buyers, gone := s.Name("left"), s.Name("buyers"), s.Name("gone")
			deleteAfter(s, left, buyers, gone)

			g, one, fifty := openGate(s, 10, nil), openGate(s, 1, nil), openGate(s, 50, nil)
			st := openStore(s, fifty)

			s.Step("One buyer clicks ten times, and then nine others come.", "一个买家连点十次，然后另外九人到来。")
			s.Do(redis, "SET", left, 10)
			sold := int64(0)
			for i := range 19 {
				buyer := "buyer0-" + s.ID
				if i >= 10 {
					buyer = s.Name(string(rune('a' + i)))
				}
				if s.Do(redis, "EVAL", takeThenAsk, 2, left, buyers, buyer) == "ok" {
					sold++
				}
			}
			s.Count("naive-sold", sold, "sold, where the script takes first and asks then", "先扣后查的脚本卖出的")
			s.Count("naive-left", s.Int(redis, "GET", left), "that Redis says are left", "Redis 里显示剩余的")
			s.Do(redis, "SMEMBERS", buyers)

			s.Step("The same clicks at the service's gate, which asks first.", "同样的点击交给服务的准入脚本：先查后扣。")
			sold = 0
			for i := range 19 {
				if _, v := g.click(g.buyer(max(0, i-9))); v == sale.Admitted {
					sold++
				}
			}
			s.Count("gate-sold", sold, "sold by the service's gate", "服务的准入脚本卖出的")

			s.Step("DECR, and refused below 0, without putting it back: six buyers for one unit, and then it is given back.", "只用 DECR，小于 0 就拒绝、不补回：1 件库存来 6 人，之后有人退回一件。")
			s.Do(redis, "SET", gone, 1)
			for range 6 {
				s.Do(redis, "DECR", gone)
			}
			s.Do(redis, "INCR", gone)
			s.Count("after-return", s.Int(redis, "DECR", gone), "what DECR answers to the next buyer", "下一个买家 DECR 得到的")
			var held sale.Reservation
			for i := range 6 {
				if r, v := one.click(one.buyer(i)); v == sale.Admitted {
					held = r
				}
			}
			_, err := one.Release(s.Context(), held)
			s.Must(err)
			_, v := one.click(one.buyer(7))
			s.Count("gate-resold", count(v == sale.Admitted), "sold again by the service's gate", "服务的准入脚本再次卖出的")

			s.Step("In PostgreSQL, 50 units for 100 buyers: an optimistic lock that is not tried again.", "PostgreSQL 里 50 件库存、100 个买家：乐观锁失败不重试。")
			db := s.SQL()
			db.SetMaxOpenConns(20)
			exec(s, db, "CREATE TABLE stock (n bigint)")
			exec(s, db, "INSERT INTO stock VALUES (50)")
			var locked atomic.Int64
			s.Proxy("postgres").Set(proxy.ToClient, proxy.Rule{Delay: 5 * time.Millisecond})
			s.Together(100, func(int) error {
				var n int64
				if err := db.QueryRowContext(s.Context(), "SELECT n FROM stock").Scan(&n); err != nil {
					return err
				}
				res, err := db.ExecContext(s.Context(), "UPDATE stock SET n = n - 1 WHERE n = $1 AND n > 0", n)
				if err != nil {
					return err
				}
				changed, err := res.RowsAffected()
				locked.Add(changed)
				return err
			})
			s.Proxy("postgres").Set(proxy.ToClient, proxy.Rule{})
			s.Count("lock-sold", locked.Load(), "of 50 sold by WHERE n = what was read", "WHERE n = 旧值 卖出的，库存 50")

			s.Step("The service's own transaction, whose condition is that there is enough.", "服务自己的事务：条件是库存足够。")
			s.Count("where-sold", st.rush(fifty, 100), "of 50 sold by WHERE n > 0", "WHERE n > 0 卖出的，库存 50")
		},
		Expect: learn.Conditions{
			"naive-left": learn.Is(0), "gate-sold": learn.Is(10), "after-return": learn.AtMost(-1), "gate-resold": learn.Is(1),
			"lock-sold": learn.Between(1, 45), "where-sold": learn.Is(50),
		},
		Why: learn.Text{
			EN: "The second clicks are refused, but each has taken a unit: {naive-sold} sold, {naive-left} left. A counter below 0 swallows what is given back: the next buyer got {after-return}, though a unit was free. An optimistic lock without another try refuses buyers while there is stock: {lock-sold} of 50 sold. Asking before taking sold {gate-sold} of 10, never going below 0 sold the returned unit ({gate-resold}), and WHERE n > 0 sold {where-sold} of 50.",
			ZH: "重复点击虽然被拒绝，但每次都扣了一件：卖出 {naive-sold}，剩余 {naive-left}。计数器减到负数会吞掉退回的库存：明明空出一件，下一个买家得到 {after-return}。乐观锁失败不重试，有货也拒绝：50 件只卖 {lock-sold}。先查后扣卖出 {gate-sold}/10；不减到负数，退回的那件又卖出 {gate-resold} 件；WHERE n > 0 卖出 {where-sold}/50。",
		},
		Say: learn.Text{
			EN: "Underselling is stock that nobody has and nobody can buy: taken by repeated clicks, swallowed below zero, or refused by an optimistic lock without a retry. Check the buyer before taking the unit, never go below zero, use WHERE n > 0. And count it: a verdict that looks only for overselling passes a sale that sold nothing.",
			ZH: "少卖就是库存没人拿到却也卖不出去：被重复点击扣掉、被负数吞掉、被不重试的乐观锁拒绝。先判重再扣减，不减成负数，条件用 n > 0。还要核对：只查超卖的验收，一件没卖也会通过。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "PostgreSQL on rows that an UPDATE waited for", ZH: "PostgreSQL：UPDATE 等待行锁之后会重新检查条件"}, URL: "https://www.postgresql.org/docs/current/transaction-iso.html#XACT-READ-COMMITTED"},
		},
	}
}

// count is 1 for what is so.
func count(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
