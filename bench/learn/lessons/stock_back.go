package lessons

import (
	"fmt"
	"strconv"
	"time"

	"queuelab/app/sale"
	"queuelab/bench/learn"
	"queuelab/bench/proxy"
)

func stockBack() learn.Lesson {
	return learn.Lesson{
		Number: 32, Name: "stock-back-twice", Topic: learn.Orders,
		Question: learn.Text{
			EN: "The buyer cancels an order at the moment in which the timer closes it. Can its unit go back into stock twice?",
			ZH: "买家取消订单，超时关单也正好触发：库存会不会回补两次？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "No: both see that the order is unpaid, and INCR is atomic, so one is added.", ZH: "不会：两边都先查了订单未支付，INCR 又是原子的，只会加一。"},
				If: learn.Conditions{"naive-left": learn.Is(10)}},
			{Text: learn.Text{EN: "Yes: both look before either writes; only a step that looks and moves at once gives back one.", ZH: "会：两边都在对方写入之前查过；只有“判断加修改”一步完成才只补一次。"},
				If: learn.Conditions{"naive-left": learn.Is(11), "gate-left": learn.Is(10)}},
			{Text: learn.Text{EN: "Yes, and nothing but a lock around both prevents it: the service gives back two as well.", ZH: "会，而且不加分布式锁谁也避免不了：服务也会补两次。"},
				If: learn.Conditions{"naive-left": learn.Is(11), "gate-left": learn.Is(11)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis"}},
		Takes: 4 * time.Second,
		Try: func(s *learn.Stand) {
			redis := s.Redis()
			order, left := s.Name("order"), s.Name("left")
			deleteAfter(s, order, left)

			s.Step("Ten units, one of them ordered. Two cancellers look at the order, and then each closes it and gives the unit back.", "库存 10 件，一件已下单。两个取消者先后查看订单，然后各自关单、补库存。")
			s.Do(redis, "SET", order, "unpaid-"+s.ID)
			s.Do(redis, "SET", left, 9)
			unpaid := 0
			for range 2 {
				if s.Do(redis, "GET", order) == "unpaid-"+s.ID {
					unpaid++
				}
			}
			for range unpaid {
				s.Do(redis, "SET", order, "cancelled-"+s.ID)
				s.Do(redis, "INCR", left)
			}
			s.Count("naive-left", s.Int(redis, "GET", left), "left of 10, after look and then write", "先查后写：10 件库存变成")

			s.Step("A single canceller, whose INCR lost its answer and is sent again.", "只有一个取消者，但 INCR 的回复丢了，它重试一次。")
			s.Do(redis, "SET", left, 9)
			lost := s.Proxy("redis").LoseReply(proxy.RedisCommand("incr"))
			if _, err := s.Ask(redis, "INCR", left); err == nil {
				s.Fail("the answer to INCR came, though the network should have lost it")
			}
			s.Eventually("the answer to be lost", 5*time.Second, func() bool { return closed(lost) })
			s.Do(redis, "INCR", left)
			s.Count("retry-left", s.Int(redis, "GET", left), "left of 10, after one retry", "重试一次：10 件库存变成")

			s.Step("The service's gate: its script gives a unit back only while that very order holds it. It is asked twice, and its first answer is lost.", "服务的准入脚本：只有这个订单还占着库存时才补。调用两次，第一次的回复也丢了。")
			var g *gate
			s.Quietly(func() { g = openGate(s, 10, nil) })
			r, v := g.click(g.buyer(1))
			if v != sale.Admitted {
				s.Fail("the buyer is %v", v)
			}
			lost = s.Proxy("redis").LoseReply(proxy.RedisTook("evalsha")) // not one that says NOSCRIPT
			_, err := g.Release(s.Context(), r)
			s.Count("gate-told", count(err != nil), "errors that the caller saw", "调用方看到的错误")
			s.Eventually("the answer to be lost", 5*time.Second, func() bool { return closed(lost) })
			again, err := g.Release(s.Context(), r)
			s.Must(err)
			s.Count("gate-again", count(again), "units given back by the second call", "第二次调用补回的库存")
			s.Count("gate-left", g.left(), "left of 10 at the gate", "准入里的库存，共 10 件")

			s.Step("Two instances of the service on one sale: five orders, and each is cancelled five times at each instance, all at once.", "两个服务实例：5 个订单，每个订单在每个实例上各取消 5 次，同时进行。")
			var one, two *learn.Service
			var voucher string
			orders := make([]string, 5)
			s.Quietly(func() {
				url := s.URL("redis-streams")
				s.Open(url)
				one = s.Service(learn.ServiceOptions{Queue: url, Redis: true})
				two = one.Beside()
				voucher = one.Sell(10)
				forgetVoucher(s, voucher)
				for i := range orders {
					orders[i], _ = one.Click(voucher, i+1)
					if status := one.Await(orders[i], i+1); status != "confirmed" {
						s.Fail("order %s is %s", orders[i], status)
					}
				}
			})
			s.Together(50, func(i int) error {
				at := []*learn.Service{one, two}[i%2]
				user := i/2%5 + 1
				status, a, err := at.Do(s.Context(), "POST", "/api/orders/"+orders[user-1]+"/cancel", strconv.Itoa(user), nil)
				if err == nil && status != 200 && status != 409 {
					err = fmt.Errorf("cancel: status %d, %s", status, a.Error.Message)
				}
				return err
			})
			s.Eventually("the units to be back at the gate", 8*time.Second, func() bool { return leftAtGate(s, voucher) >= 10 })
			balanced, said := one.Balanced("--wait=5s")
			if !balanced {
				s.Fail("the sale does not balance: %s", said)
			}
			s.Count("cancels", 50, "cancels sent for five orders", "为 5 个订单发出的取消请求")
			s.Count("service-left", leftAtGate(s, voucher), "left of 10 at the service's gate", "服务准入里的库存，共 10 件")
			s.Count("database-left", one.Query("SELECT stock_left FROM vouchers"), "left of 10 in its database", "服务数据库里的库存，共 10 件")
			s.Do(redis, "HGETALL", inGate(s, voucher, "sale")[0])
		},
		Expect: learn.Conditions{
			"retry-left": learn.Is(11), "gate-told": learn.Is(1), "gate-again": learn.Is(0), "cancels": learn.Is(50), "service-left": learn.Is(10), "database-left": learn.Is(10),
		},
		Why: learn.Text{
			EN: "INCR is atomic, but looking and adding are two steps: both cancellers saw an unpaid order, and 10 units became {naive-left}. A single canceller does the same with one retry: {retry-left}. The gate's script looks whether this order holds a unit and gives it back in one step, so that the second call gave {gate-again}. In the database one UPDATE with the old status in its condition moves the order and the stock in one transaction: {cancels} cancels of five orders left {database-left} there and {service-left} at the gate.",
			ZH: "INCR 是原子的，但“查”和“加”是两步：两个取消者都看到未支付，10 件变成 {naive-left} 件。只有一个取消者，重试一次也一样：{retry-left}。准入脚本在一步里判断“这个订单是否还占着库存”并补回，第二次调用补了 {gate-again} 件。数据库里用带旧状态条件的一条 UPDATE，和补库存放在同一事务：5 个订单被取消 {cancels} 次，数据库剩 {database-left}，准入剩 {service-left}。",
		},
		Say: learn.Text{
			EN: "Giving stock back must be idempotent by order id: a conditional status change decides who does it, UPDATE … WHERE status = 'unpaid', and only whoever changed a row adds the unit, in the same transaction. In Redis a script checks that this order holds the unit, removes the buyer and adds one. Then cancel, timer, retry and reconciler may all come at once.",
			ZH: "回补要按订单号幂等：先做条件状态变更 UPDATE … WHERE status='未支付'，只有改到行的那一个才加库存，且在同一事务里。Redis 侧用脚本：确认这个订单占着库存，再删买家、加一。这样取消、超时、重试、对账同时来也只补一次。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "PostgreSQL on rows that an UPDATE waited for", ZH: "PostgreSQL：UPDATE 等待行锁之后会重新检查条件"}, URL: "https://www.postgresql.org/docs/current/transaction-iso.html#XACT-READ-COMMITTED"},
		},
	}
}
