package lessons

import (
	"context"
	"time"

	"queuelab/app/sale"
	"queuelab/bench/learn"
)

func onePerBuyer() learn.Lesson {
	return learn.Lesson{
		Number: 13, Name: "one-per-buyer", Topic: learn.Admission,
		Question: learn.Text{
			EN: "One order per buyer: which layer must see to it, the script in Redis or a unique index in the database?",
			ZH: "“一人一单”要在哪一层保证：Redis 的脚本，还是数据库的唯一索引？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Redis: its script is atomic, so a buyer never gets through twice.", ZH: "Redis：脚本是原子的，同一个买家不可能通过两次。"},
				If: learn.Conditions{"script-only": learn.Is(1)}},
			{Text: learn.Text{EN: "The database: the index alone holds, and Redis spares it the rest.", ZH: "数据库：只靠唯一索引就守得住，Redis 是替它挡流量的。"},
				If: learn.Conditions{"script-only": learn.AtLeast(2), "index-only": learn.Is(1)}},
			{Text: learn.Text{EN: "Both: each of them alone lets a second order through.", ZH: "两层缺一不可：单独哪一层都会漏出第二单。"},
				If: learn.Conditions{"script-only": learn.AtLeast(2), "index-only": learn.AtLeast(2)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis"}, {Kind: "postgres"}},
		Takes: 2 * time.Second,
		Try: func(s *learn.Stand) {
			const clicks = 10
			s.Step("Two databases of the service: one as it is, and one without its unique index.", "服务的两个数据库：一个原样，一个去掉唯一索引。")
			g, unguarded := openGate(s, 100, nil), openGate(s, 100, nil)
			guarded, open := openStore(s, g), openStore(s, unguarded)
			exec(s, open.sql(), "DROP INDEX orders_one_per_user")

			s.Step("Ten clicks of one buyer go straight to the database. Each message comes twice.", "同一个买家点十次，直接进数据库；每条消息投递两次。")
			straight := func(g *gate) (rs []sale.Reservation) {
				for range clicks {
					rs = append(rs, g.order(g.buyer(1)))
				}
				return rs
			}
			s.Count("index-only", guarded.twice(straight(g)), "orders with the index only", "只有唯一索引时的订单")
			s.Count("rows", number(s, guarded.sql(), "SELECT count(*) FROM orders"), "rows that those clicks wrote", "这些点击写下的行")
			s.Count("neither", open.twice(straight(unguarded)), "orders with neither", "两层都没有时的订单")

			s.Step("The same clicks at the gate: how many get through to the database?", "同样的点击先过准入：有几次到达数据库？")
			var passed []sale.Reservation
			for range clicks {
				if r, v := g.click(g.buyer(2)); v == sale.Admitted {
					passed = append(passed, r)
				}
			}
			s.Count("passed", int64(len(passed)), "of ten clicks that get through the gate", "十次点击中通过准入的")
			s.Do(s.Redis(), "HGETALL", g.key("buyers"))
			s.Count("both", guarded.twice(passed), "orders with both", "两层都在时的订单")

			s.Step("Redis loses its keys before the order is in the database, and the buyer clicks again.", "订单入库之前 Redis 丢了数据，同一个买家又点了一次。")
			forgetful := func(g *gate) []sale.Reservation {
				before, _ := g.click(g.buyer(3))
				s.Must(s.Redis().Del(s.Context(), gateKeys(g.voucher.ID.String())...).Err())
				g.load()
				after, v := g.click(g.buyer(3))
				if v != sale.Admitted {
					s.Fail("Redis forgot the buyer, who is %v all the same", v)
				}
				return []sale.Reservation{before, after}
			}
			s.Count("script-only", open.twice(forgetful(unguarded)), "orders then, with the script only", "此时只有脚本的订单")
			s.Count("both-then", guarded.twice(forgetful(g)), "orders then, with both", "此时两层都在的订单")
		},
		Expect: learn.Conditions{"rows": learn.Is(10), "neither": learn.Is(10), "passed": learn.Is(1), "both": learn.Is(1), "both-then": learn.Is(1)},
		Why: learn.Text{
			EN: "The script stopped nine of ten clicks ({passed} got through), but what Redis forgets it cannot check: after it lost its keys one buyer had {script-only} orders. The index held by itself ({index-only} order of ten clicks, {both-then} after Redis forgot), at the price of a row for each click ({rows}). With neither there were {neither} orders; that each message came twice added none, since an order's id is its primary key.",
			ZH: "脚本拦下了十次点击中的九次（通过 {passed} 次），但 Redis 忘掉的它查不到：丢数据之后一个买家有 {script-only} 单。唯一索引自己就守得住（十次点击 {index-only} 单，Redis 丢数据后 {both-then} 单），代价是每次点击都要写一行（{rows} 行）。两层都没有时有 {neither} 单；消息投递两次没有多出订单，因为订单号是主键。",
		},
		Say: learn.Text{
			EN: "Correctness belongs to the database: a unique index on (voucher, buyer), and ON CONFLICT treated as done. The Redis script does the same check first, to keep repeated clicks and their load away from it. Redis may forget after a crash or failover, the index does not.",
			ZH: "正确性放在数据库：（券，买家）唯一索引，冲突当作已处理。Redis 脚本先做同样的判断，把重复点击挡在数据库之外。Redis 宕机或切主可能丢数据，唯一索引不会。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "INSERT … ON CONFLICT in PostgreSQL", ZH: "PostgreSQL 的 INSERT … ON CONFLICT"}, URL: "https://www.postgresql.org/docs/current/sql-insert.html#SQL-ON-CONFLICT"},
		},
	}
}

// twice decides each order two times, as if its message had come again, and
// counts the orders that stand.
func (d *database) twice(rs []sale.Reservation) (orders int64) {
	ctx := d.stand.Context()
	ids := make([]sale.ID, len(rs))
	for i, r := range rs {
		ids[i] = r.OrderID
		for range 2 {
			_, err := d.decide(ctx, r)
			d.stand.Must(err)
		}
	}
	return d.standing(ctx, ids)
}

// standing counts those of the orders that have a unit.
func (d *database) standing(ctx context.Context, ids []sale.ID) (n int64) {
	os, err := d.Orders(ctx, ids...)
	d.stand.Must(err)
	for _, o := range os {
		n += count(o.Status == sale.Confirmed)
	}
	return n
}
