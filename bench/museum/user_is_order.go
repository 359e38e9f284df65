package museum

import (
	"time"

	"queuelab/bench/learn"
)

func userIsOrder() Exhibit {
	// buy lets buyer 7 buy two products, and counts the orders that are there.
	buy := func(s *learn.Stand, table, id string) (orders, failed int64) {
		db := s.SQL()
		_, err := db.ExecContext(s.Context(), `CREATE TABLE `+table+` (id `+id+` PRIMARY KEY, buyer bigint NOT NULL, product text NOT NULL)`)
		s.Must(err)
		for _, product := range []string{"tea-" + s.ID, "coffee-" + s.ID} {
			insert := `INSERT INTO ` + table + ` (id, buyer, product) VALUES ($1, $1, $2) RETURNING product`
			if id != "bigint" {
				insert = `INSERT INTO ` + table + ` (buyer, product) VALUES ($1, $2) RETURNING product`
			}
			var bought string
			if db.QueryRowContext(s.Context(), insert, 7, product).Scan(&bought) != nil {
				failed++
			}
		}
		s.Must(db.QueryRowContext(s.Context(), `SELECT count(*) FROM `+table+` WHERE product LIKE '%' || $1`, s.ID).Scan(&orders))
		return orders, failed
	}
	return Exhibit{
		Number: 11, Name: "order-id-is-the-user", Found: []string{"003"},
		Idea: learn.Text{
			EN: "The buyer's id serves as the order's id: one order per buyer, so it is unique.",
			ZH: "拿用户 ID 当订单 ID：一人一单，反正唯一。",
		},
		Needs: []learn.Need{{Kind: "postgres"}}, Takes: time.Second,
		Damage: func(s *learn.Stand) {
			orders, failed := buy(s, "orders", "bigint")
			s.Count("damage-orders", orders, "orders of a buyer of two products", "同一买家买两种商品写成的订单")
			s.Count("damage-failed", failed, "refused as duplicates", "因主键冲突失败的")
		},
		Repair: func(s *learn.Stand) {
			orders, failed := buy(s, "orders2", "bigint GENERATED ALWAYS AS IDENTITY")
			s.Count("repair-orders", orders, "orders of a buyer of two products", "同一买家买两种商品写成的订单")
			s.Count("repair-failed", failed, "refused as duplicates", "因主键冲突失败的")
		},
		Shows: learn.Conditions{
			"damage-orders": learn.Is(1), "damage-failed": learn.Is(1), "repair-orders": learn.Is(2), "repair-failed": learn.Is(0),
		},
		Happens: learn.Text{
			EN: "One order per buyer holds for one product. With the second product the primary key collides: {damage-orders} of 2 orders, and the consumer retries the other for ever or drops it.",
			ZH: "一人一单只对一种商品成立。买第二种商品时主键冲突：2 条订单写成 {damage-orders} 条，另一条要么无限重试要么丢弃。",
		},
		Mend: learn.Text{
			EN: "The order has an id of its own, and a unique index over voucher and buyer keeps one order per buyer: {repair-orders} of 2.",
			ZH: "订单有自己的 ID，一人一单由（券，用户）唯一索引保证：2 条写成 {repair-orders} 条。",
		},
	}
}
