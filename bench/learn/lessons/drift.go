package lessons

import (
	"context"
	"log/slog"
	"time"

	"queuelab/app/reconcile"
	"queuelab/app/sale"
	"queuelab/bench/learn"
	"queuelab/queue"
)

func drift() learn.Lesson {
	return learn.Lesson{
		Number: 33, Name: "drift", Topic: learn.Orders,
		Question: learn.Text{
			EN: "Stock in Redis and in the database differ. A job sets Redis to what the database says, while six of ten units are sold and their orders are still in the queue. What happens?",
			ZH: "Redis 和 DB 库存不一致怎么对账？10 件已卖出 6 件、订单还在队列里，这时定时任务把 Redis 库存设成数据库的值，会怎样？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Nothing bad: the database is the truth, and so is Redis then.", ZH: "没问题：数据库是准的，对齐之后 Redis 也准了。"},
				If: learn.Conditions{"naive-admitted": learn.AtMost(10)}},
			{Text: learn.Text{EN: "Six too many are admitted: what is on its way counts as free. Compare with what is in flight, and change by the difference.", ZH: "多放进来 6 个：在途订单被当成了可售。要扣掉在途再比，并且只按差值修正。"},
				If: learn.Conditions{"naive-admitted": learn.Is(16), "inflight-left": learn.Is(4)}},
			{Text: learn.Text{EN: "The same with any reconciliation: only a sale that stands still can be compared.", ZH: "任何对账都一样：只有停售之后才能对。"},
				If: learn.Conditions{"naive-admitted": learn.Is(16), "inflight-left": learn.AtLeast(5)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis"}, {Kind: "postgres"}},
		Takes: 3 * time.Second,
		Try: func(s *learn.Stand) {
			redis := s.Redis()
			var naive, ours, level, ghost, closed, lost *gate
			var st *database
			s.Quietly(func() {
				all := make([]*gate, 6)
				for i := range all {
					all[i] = openGate(s, 10, nil)
				}
				naive, ours, level, ghost, closed, lost = all[0], all[1], all[2], all[3], all[4], all[5]
				st = openStore(s, all...)
			})
			sell := func(g *gate, from, to int) (rs []sale.Reservation) {
				for i := from; i < to; i++ {
					if r, v := g.click(g.buyer(i)); v == sale.Admitted {
						rs = append(rs, r)
					}
				}
				return rs
			}
			// finish decides orders, as the worker does.
			finish := func(g *gate, rs []sale.Reservation) (confirmed int64) {
				for _, r := range rs {
					ok, err := st.decide(s.Context(), r)
					s.Must(err)
					confirmed += count(ok)
					s.Must(g.Settle(s.Context(), r))
				}
				return confirmed
			}

			s.Step("Six of ten units are sold at the gate; the consumer is slow, and the database still says 10. The job sets Redis to that.", "准入已卖出 10 件中的 6 件；消费者慢，数据库仍是 10。定时任务把 Redis 设成 10。")
			promised := sell(naive, 0, 6)
			v, err := st.Voucher(s.Context(), naive.voucher.ID)
			s.Must(err)
			s.Do(redis, "HSET", naive.key("sale"), "stock", v.Left)
			promised = append(promised, sell(naive, 6, 30)...)
			s.Count("naive-admitted", int64(len(promised)), "buyers admitted for 10 units", "10 件库存放行的买家")
			var got int64
			s.Quietly(func() { got = finish(naive, promised) })
			s.Count("naive-failed", int64(len(promised))-got, "of them for whom the database has none", "其中数据库里没有货的")

			s.Step("The same six at another gate, looked at by the service's reconciler.", "另一个准入同样卖出 6 件，由服务的对账器来看。")
			sell(ours, 0, 6)
			const age = 100 * time.Millisecond
			look := func(g *gate, waiting int64) *reconcile.Reconciler {
				return &reconcile.Reconciler{
					Gate: g.Redis, Store: st.Store, Backlog: told{waiting}, Log: slog.New(slog.DiscardHandler), Age: age, Repair: true,
					Vouchers: func(context.Context, time.Time) ([]sale.ID, error) { return []sale.ID{g.voucher.ID}, nil },
				}
			}
			r := look(ours, 6)
			var state reconcile.State
			for range 4 {
				state, err = r.Once(s.Context())
				s.Must(err)
				time.Sleep(age / 2)
			}
			s.Count("inflight-drift", int64(len(state.Drift)), "differences that it names while six are in flight", "6 单在途时它报告的差异")
			s.Count("inflight-left", ours.left(), "left of 10 at that gate", "这个准入剩余的库存，共 10 件")

			s.Step("Four other gates are damaged by hand: a unit vanished, a buyer without an order, a closed order that still holds, an order without its buyer.",
				"另外四个准入被人为弄坏：少了一件、有买家没订单、已关闭的订单还占着、有订单没买家。")
			var hold []sale.Reservation
			s.Quietly(func() {
				for _, g := range []*gate{level, ghost, closed, lost} {
					hold = sell(g, 0, 3)
					finish(g, hold)
				}
			})
			s.Do(redis, "HINCRBY", level.key("sale"), "stock", -1)
			s.Do(redis, "HSET", ghost.key("buyers"), "ghost-"+s.ID, ghost.order("").OrderID.String())
			s.Do(redis, "HINCRBY", ghost.key("sale"), "stock", -1)
			held, err := st.HeldOrders(s.Context(), closed.voucher.ID, 0, 1)
			s.Must(err)
			_, _, err = st.CloseOrder(s.Context(), held[0].OrderID, sale.Cancelled, "by_buyer")
			s.Must(err)
			s.Do(redis, "HDEL", lost.key("buyers"), lost.buyer(0))
			s.Do(redis, "HINCRBY", lost.key("sale"), "stock", 1)

			s.Step("The reconciler looks at each, names it, and puts it right.", "对账器逐个查看、定性、修正。")
			named, right := int64(0), int64(0)
			kinds := []reconcile.Kind{reconcile.StockDiffers, reconcile.BuyerWithoutOrder, reconcile.ClosedOrderHolds, reconcile.OrderWithoutBuyer}
			for i, g := range []*gate{level, ghost, closed, lost} {
				r, kind := look(g, 0), kinds[i]
				s.Eventually("gate and database to agree", 8*time.Second, func() bool {
					state, err = r.Once(s.Context())
					s.Must(err)
					return state.Done[kind] > 0 && len(state.Found) == 0 && len(state.Accounts) == 1 && len(state.Accounts[0].Wrong()) == 0
				})
				named += count(state.Seen[kind] > 0)
				right++
			}
			s.Count("named", named, "of four kinds that it names", "四种损坏里它说对的")
			s.Count("right", right, "of them put right", "其中修正的")
			s.Count("after-left", level.left()+ghost.left()+closed.left()+lost.left(), "left at the four gates, of 40 less 11 held", "四个准入的库存之和（40 减去 11 件已占）")
			s.Do(redis, "HKEYS", lost.key("buyers"))
		},
		Expect: learn.Conditions{"naive-failed": learn.Is(6), "inflight-drift": learn.Is(0), "named": learn.Is(4), "right": learn.Is(4), "after-left": learn.Is(29)},
		Why: learn.Text{
			EN: "The database lags: what Redis has sold is in the queue for a while. The job counted six units on their way as free, so that {naive-admitted} buyers were admitted for 10, and {naive-failed} of them got nothing after they had been promised. Units left and buyers, those in flight among them, must add up, and only what stands over several looks is drift: the reconciler named {inflight-drift} differences and left {inflight-left}. Of four kinds of real damage it named {named} and put {right} right, each by its own step and never by setting a number that was read before.",
			ZH: "数据库是滞后的：Redis 卖出的要在队列里待一会儿。任务把 6 件在途当成可售，结果 10 件放行了 {naive-admitted} 人，其中 {naive-failed} 人得到承诺却没货。正确的等式是“剩余 + 买家（含在途）= 总量”，而且连续几次都存在才算差异：对账器报告 {inflight-drift} 处，库存保持 {inflight-left}。四种真实损坏它说对 {named} 种、修正 {right} 种，各用各的步骤，从不把读到的旧数字写回去。",
		},
		Say: learn.Text{
			EN: "The database is the truth, but compare it with Redis less what is in flight, and only act on what several looks confirm. Then correct by a signed difference or by the order it is about, in a script, because buyers go on clicking meanwhile. Name each kind, count it and raise an alarm: a repair hides a bug.",
			ZH: "以数据库为准，但要把在途算进去，而且连续多次都不一致才处理。修正用带符号的差值或针对具体订单，在脚本里做，因为期间用户还在点。每种差异都要定性、计数、报警：能自动修的背后往往有 bug。",
		},
		Further: []learn.Link{
			{Cell: "redis-streams/aof-everysec consumer-kill-mid-handle"},
		},
	}
}

// told is a queue that says how much waits in it.
type told struct{ ready int64 }

func (t told) Backlog(context.Context) (queue.Backlog, error) {
	return queue.Backlog{Ready: t.ready}, nil
}
