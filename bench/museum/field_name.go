package museum

import (
	"strconv"
	"time"

	"queuelab/bench/learn"
)

func fieldName() Exhibit {
	// consume lets a script queue two orders, and a consumer write them into the
	// database under the id that it reads.
	consume := func(s *learn.Stand, name, field string) (orders, failed int64) {
		redis, db := s.Redis(), s.SQL()
		key := stream(s, redis, name, 0)
		_, err := db.ExecContext(s.Context(), `CREATE TABLE orders (id bigint PRIMARY KEY, run text NOT NULL)`)
		s.Must(err)
		for id := range 2 {
			s.Do(redis, "EVAL", `return redis.call('XADD', KEYS[1], '*', '`+field+`', ARGV[1], 'run', ARGV[2])`, 1, key, 100+id, s.ID)
		}
		for _, e := range group(s, redis, "c1", key, ">", 10) {
			id, _ := strconv.ParseInt(e.fields["id"], 10, 64) // what is missing stays 0, as in a bean
			if _, err := db.ExecContext(s.Context(), `INSERT INTO orders (id, run) VALUES ($1, $2)`, id, e.fields["run"]); err != nil {
				failed++
			}
		}
		s.Must(db.QueryRowContext(s.Context(), `SELECT count(*) FROM orders WHERE run = $1 AND id >= 100`, s.ID).Scan(&orders))
		return orders, failed
	}
	return Exhibit{
		Number: 16, Name: "id-is-not-id", Found: []string{"003"},
		Idea: learn.Text{
			EN: "The script writes the field Id, and the consumer fills an object whose field is called id.",
			ZH: "脚本写的字段叫 Id，消费者映射的对象字段叫 id。",
		},
		Needs: []learn.Need{{Kind: "redis"}, {Kind: "postgres"}}, Takes: time.Second,
		Damage: func(s *learn.Stand) {
			orders, failed := consume(s, "orders", "Id")
			s.Count("damage-orders", orders, "of 2 orders under their ids", "2 条订单里 ID 正确的")
			s.Count("damage-failed", failed, "refused as duplicates of the order 0", "因与 0 号订单主键冲突而失败的")
		},
		Repair: func(s *learn.Stand) {
			orders, failed := consume(s, "orders2", "id")
			s.Count("repair-orders", orders, "of 2 orders under their ids", "2 条订单里 ID 正确的")
			s.Count("repair-failed", failed, "refused as duplicates", "因主键冲突而失败的")
		},
		Shows: learn.Conditions{
			"damage-orders": learn.Is(0), "damage-failed": learn.Is(1), "repair-orders": learn.Is(2), "repair-failed": learn.Is(0),
		},
		Happens: learn.Text{
			EN: "The field that is not found is left empty without a word: {damage-orders} of 2 orders have their id, and the second collides with the first.",
			ZH: "找不到的字段被悄悄留空：2 条订单里 {damage-orders} 条 ID 正确，第二条还和第一条冲突。",
		},
		Mend: learn.Text{
			EN: "One type writes and reads the message, and a reader refuses what lacks a field: {repair-orders} of 2.",
			ZH: "读写用同一个类型，缺字段就拒绝：2 条写成 {repair-orders} 条。",
		},
	}
}
