package museum

import (
	"database/sql"
	"time"

	"queuelab/bench/learn"
)

func paidTooEarly() Exhibit {
	// shop has a table of orders and one of payments; the order's row comes later,
	// when the consumer gets to it.
	shop := func(s *learn.Stand) *sql.DB {
		db := s.SQL()
		for _, table := range []string{
			`CREATE TABLE orders (id bigint PRIMARY KEY, status text NOT NULL, run text NOT NULL)`,
			`CREATE TABLE payments (order_id bigint NOT NULL, run text NOT NULL)`,
		} {
			_, err := db.ExecContext(s.Context(), table)
			s.Must(err)
		}
		return db
	}
	consume := func(s *learn.Stand, db *sql.DB) {
		s.Step("Now the consumer writes the order.", "这时消费者才写入订单。")
		var run string
		s.Must(db.QueryRowContext(s.Context(), `INSERT INTO orders (id, status, run) VALUES (1, 'confirmed', $1) RETURNING run`, s.ID).Scan(&run))
	}
	count := func(s *learn.Stand, db *sql.DB, query string) (n int64) {
		s.Must(db.QueryRowContext(s.Context(), query, s.ID).Scan(&n))
		return n
	}
	const paid = `SELECT count(*) FROM orders WHERE run = $1 AND status = 'paid'`
	const money = `SELECT count(*) FROM payments WHERE run = $1`
	return Exhibit{
		Number: 19, Name: "payable-before-it-is-there", Found: []string{"001"},
		Idea: learn.Text{
			EN: "The buyer gets the order's id at once and may pay; the order's row is written later, by the consumer.",
			ZH: "买家立刻拿到订单号就能支付，订单记录稍后才由消费者写入。",
		},
		Needs: []learn.Need{{Kind: "postgres"}}, Takes: time.Second,
		Damage: func(s *learn.Stand) {
			db := shop(s)
			s.Step("The buyer pays before the consumer got to the order.", "消费者还没处理，买家已经付款。")
			_, err := db.ExecContext(s.Context(), `INSERT INTO payments (order_id, run) VALUES (1, $1)`, s.ID)
			s.Must(err)
			_, err = db.ExecContext(s.Context(), `UPDATE orders SET status = 'paid' WHERE id = 1 AND run = $1`, s.ID) // no row, and no error
			s.Must(err)
			consume(s, db)
			s.Count("damage-money", count(s, db, money), "payments taken", "收下的付款")
			s.Count("damage-paid", count(s, db, paid), "orders paid", "已付款的订单")
		},
		Repair: func(s *learn.Stand) {
			db := shop(s)
			refused := int64(0)
			pay := func() {
				tx, err := db.BeginTx(s.Context(), nil)
				s.Must(err)
				done, err := tx.ExecContext(s.Context(), `UPDATE orders SET status = 'paid' WHERE id = 1 AND run = $1 AND status = 'confirmed'`, s.ID)
				s.Must(err)
				if n, err := done.RowsAffected(); err != nil || n != 1 {
					refused++ // not yet: come again
					s.Must(tx.Rollback())
					return
				}
				_, err = tx.ExecContext(s.Context(), `INSERT INTO payments (order_id, run) VALUES (1, $1)`, s.ID)
				s.Must(err)
				s.Must(tx.Commit())
			}
			pay()
			consume(s, db)
			pay()
			s.Count("repair-refused", refused, "payments refused as too early", "因太早而拒绝的付款")
			s.Count("repair-money", count(s, db, money), "payments taken", "收下的付款")
			s.Count("repair-paid", count(s, db, paid), "orders paid", "已付款的订单")
		},
		Shows: learn.Conditions{
			"damage-money": learn.Is(1), "damage-paid": learn.Is(0),
			"repair-refused": learn.Is(1), "repair-money": learn.Is(1), "repair-paid": learn.Is(1),
		},
		Happens: learn.Text{
			EN: "An UPDATE of a row that is not there yet changes nothing and says nothing: {damage-money} payment was taken, {damage-paid} orders are paid, and the order will be cancelled for want of payment.",
			ZH: "更新一行还不存在的记录，既不改也不报错：收了 {damage-money} 笔钱，已付订单 {damage-paid} 条，这单之后还会因未支付被取消。",
		},
		Mend: learn.Text{
			EN: "Money is taken in the transaction that moves the order from confirmed to paid, and only if that was one row: {repair-refused} attempt was too early, the next one paid {repair-paid} order.",
			ZH: "收款和“已确认→已支付”放在同一事务，只有恰好更新一行才成立：太早的 {repair-refused} 次被拒，之后付成 {repair-paid} 单。",
		},
	}
}
