package lessons

import (
	"fmt"
	"sync/atomic"
	"time"

	"queuelab/bench/learn"
	"queuelab/bench/proxy"
)

func payOrClose() learn.Lesson {
	const races = 100
	return learn.Lesson{
		Number: 31, Name: "pay-or-close", Topic: learn.Orders,
		Question: learn.Text{
			EN: "A payment is told while the order is being closed. Each looks first whether the order is still unpaid. What comes of 100 such races?",
			ZH: "支付回调和关单同时到达，各自先查订单是否“待支付”再更新。100 次这样的竞争会怎样？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "One of the two wins each time: whoever comes later sees the new status.", ZH: "每次只有一个成功：后来的会看到新状态。"},
				If: learn.Conditions{"naive-both": learn.Is(0)}},
			{Text: learn.Text{EN: "Some are paid and their unit is back in stock as well; one conditional UPDATE prevents it.", ZH: "有些订单既收了钱、库存又回补了；用一条带条件的 UPDATE 就能避免。"},
				If: learn.Conditions{"naive-both": learn.AtLeast(1), "both": learn.Is(0)}},
			{Text: learn.Text{EN: "The same, and the service has it too: nothing but a distributed lock helps.", ZH: "有些既收钱又回补，服务也一样：必须用分布式锁。"},
				If: learn.Conditions{"naive-both": learn.AtLeast(1), "both": learn.AtLeast(1)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "postgres"}},
		Takes: 4 * time.Second,
		Try: func(s *learn.Stand) {
			s.Step("100 unpaid orders in PostgreSQL, all of a voucher without stock. Each is paid and closed at the same time: SELECT, and then UPDATE.", "PostgreSQL 里 100 个待支付订单，库存已为 0。每个订单同时支付和关单：先 SELECT，再 UPDATE。")
			db := s.SQL()
			db.SetMaxOpenConns(16)
			s.Quietly(func() {
				exec(s, db, "CREATE TABLE sales (stock bigint)")
				exec(s, db, "INSERT INTO sales VALUES (0)")
				exec(s, db, "CREATE TABLE orders (id bigint PRIMARY KEY, buyer text, status text, paid bigint DEFAULT 0, closed bigint DEFAULT 0)")
				exec(s, db, "INSERT INTO orders (id, buyer, status) SELECT n, 'buyer-"+s.ID+"', 'unpaid' FROM generate_series(1, 100) n")
			})
			s.Proxy("postgres").Set(proxy.ToClient, proxy.Rule{Delay: 2 * time.Millisecond})
			s.Together(2*races, func(i int) error {
				id := i/2 + 1
				var status string
				if err := db.QueryRowContext(s.Context(), "SELECT status FROM orders WHERE id = $1", id).Scan(&status); err != nil || status != "unpaid" {
					return err
				}
				if i%2 == 0 {
					_, err := db.ExecContext(s.Context(), "UPDATE orders SET status = 'paid', paid = 1 WHERE id = $1", id)
					return err
				}
				if _, err := db.ExecContext(s.Context(), "UPDATE orders SET status = 'closed', closed = 1 WHERE id = $1", id); err != nil {
					return err
				}
				_, err := db.ExecContext(s.Context(), "UPDATE sales SET stock = stock + 1")
				return err
			})
			s.Proxy("postgres").Set(proxy.ToClient, proxy.Rule{})
			s.Count("naive-both", number(s, db, "SELECT count(*) FROM orders WHERE paid = 1 AND closed = 1"), "of 100 orders paid and put back on sale", "100 个订单里既收了钱又回补库存的")
			s.Count("naive-lost", number(s, db, "SELECT count(*) FROM orders WHERE paid = 1 AND status = 'closed'"), "of them closed with the buyer's money", "其中状态是“已关闭”却收了钱的")
			var one string
			s.Must(db.QueryRowContext(s.Context(), "SELECT buyer || ': ' || status FROM orders WHERE id = 1").Scan(&one))

			s.Step("The service, with 100 confirmed orders of its own. Each is paid and cancelled at the same time.", "换成服务：100 个已确认的订单，每个同时支付和取消。")
			var shop *learn.Service
			orders := make([]string, races)
			s.Quietly(func() {
				shop = s.Service(learn.ServiceOptions{Postgres: true})
				voucher := shop.Sell(races)
				s.Together(races, func(i int) error {
					_, a, err := shop.Buy(s.Context(), voucher, i+1)
					orders[i] = a.OrderID
					return err
				})
				for i, o := range orders {
					if status := shop.Await(o, i+1); status != "confirmed" {
						s.Fail("order %q is %s", o, status)
					}
				}
			})
			var paidAnswers, late atomic.Int64
			s.Together(2*races, func(i int) error {
				order, user := orders[i/2], fmt.Sprint(i/2+1)
				if i%2 == 0 {
					status, a, err := shop.Do(s.Context(), "POST", "/api/orders/"+order+"/pay", "", map[string]any{"paymentId": "pay-" + order, "cents": 4700})
					switch {
					case err == nil && status == 200 && a.Status == "paid":
						paidAnswers.Add(1)
					case err == nil && status == 409:
						late.Add(1)
					case err == nil:
						err = fmt.Errorf("pay: status %d, %s", status, a.Error.Message)
					}
					return err
				}
				status, a, err := shop.Do(s.Context(), "POST", "/api/orders/"+order+"/cancel", user, nil)
				if err == nil && status != 200 && status != 409 {
					err = fmt.Errorf("cancel: status %d, %s", status, a.Error.Message)
				}
				return err
			})
			paid := shop.Query("SELECT count(*) FROM orders WHERE status = 'paid'")
			s.Count("paid", paid, "orders paid", "已支付的订单")
			s.Count("cancelled", shop.Query("SELECT count(*) FROM orders WHERE status = 'cancelled'"), "orders cancelled", "已取消的订单")
			s.Count("both", shop.Query("SELECT count(*) FROM orders WHERE paid_ms > 0 AND closed_ms > 0"), "orders paid and put back on sale", "既支付又回补库存的订单")
			s.Count("decided", shop.Query("SELECT count(*) FROM orders WHERE status IN ('paid', 'cancelled')"), "orders with one end, of 100", "只有一个结局的订单，共 100 个")
			s.Count("off", shop.Query("SELECT abs(stock - stock_left - (SELECT count(*) FROM orders WHERE status = 'paid')) FROM vouchers"), "units by which the stock is off", "库存对不上的件数")
			s.Count("refund-due", shop.Query("SELECT count(*) FROM payments WHERE state = 'refund_due'"), "payments that came too late, to be refunded", "来晚了、待退款的支付")
			s.Count("money-lost", shop.Query("SELECT count(*) FROM payments p JOIN orders o ON o.id = p.order_id WHERE p.state = 'taken' AND o.status <> 'paid'"), "payments kept without an order", "收了钱却没有订单的支付")
			if paidAnswers.Load() != paid || late.Load()+paid != races {
				s.Fail("%d payments were answered with paid and %d as late, and %d orders are paid", paidAnswers.Load(), late.Load(), paid)
			}
		},
		Expect: learn.Conditions{"naive-lost": learn.AtLeast(1), "decided": learn.Is(races), "off": learn.Is(0), "money-lost": learn.Is(0), "paid": learn.AtMost(races), "cancelled": learn.AtMost(races), "refund-due": learn.AtMost(races)},
		Why: learn.Text{
			EN: "Between SELECT and UPDATE there is a gap in which the other one looks too: {naive-both} of 100 orders were paid and put back on sale, {naive-lost} of them ended closed with the buyer's money. The service looks and moves in one statement, UPDATE … WHERE status = 'confirmed', and the database lets one of two through: {paid} paid, {cancelled} cancelled, {both} both. A payment that lost the race is kept and due back ({refund-due}), never dropped ({money-lost} kept without an order), and the stock is off by {off}.",
			ZH: "SELECT 和 UPDATE 之间有空档，另一方也在查：100 个订单有 {naive-both} 个既收钱又回补库存，其中 {naive-lost} 个最后是“已关闭”。服务用一条语句判断并修改：UPDATE … WHERE status = 'confirmed'，数据库只放行一个：支付 {paid}，取消 {cancelled}，两者皆有 {both}。输掉竞争的支付会记下并待退款（{refund-due} 笔），不会丢（收了钱没订单的 {money-lost} 笔），库存误差 {off}。",
		},
		Say: learn.Text{
			EN: "Order status is a state machine whose steps are conditional updates: UPDATE … SET status = 'paid' WHERE id = $1 AND status = 'unpaid', and the number of changed rows says who won; stock moves in the same transaction. A payment for a closed order is real money: record it and refund it. No distributed lock is needed, the row is the lock.",
			ZH: "订单是状态机，每一步都用条件更新：UPDATE … SET status='已支付' WHERE id=$1 AND status='待支付'，看影响行数判断谁赢，回补库存放在同一事务。订单关闭后到账的钱是真钱：记录下来并自动退款。不需要分布式锁，行锁就够了。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "PostgreSQL: what READ COMMITTED lets through", ZH: "PostgreSQL：READ COMMITTED 会放过什么"}, URL: "https://www.postgresql.org/docs/current/transaction-iso.html#XACT-READ-COMMITTED"},
		},
	}
}
