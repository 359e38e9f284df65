package lessons

import (
	"context"
	"time"

	"queuelab/app/sale"
	"queuelab/bench/fault"
	"queuelab/bench/learn"
	"queuelab/bench/node"
	"queuelab/queue"
)

func effectOnce() learn.Lesson {
	return learn.Lesson{
		Number: 16, Name: "effect-once", Topic: learn.Consuming,
		Question: learn.Text{
			EN: "How does a message take effect once, though it may be delivered twice?",
			ZH: "消息可能重复投递，怎样保证消费幂等？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "A manual ack does: what was handled does not come again.", ZH: "手动 ACK 就够了：处理过的消息不会再来。"},
				If: learn.Conditions{"plain": learn.Is(1)}},
			{Text: learn.Text{EN: "A mark in Redis does: SETNX with the message's id, before it is handled.", ZH: "Redis 打标记就够了：处理之前先用消息 ID 做 SETNX。"},
				If: learn.Conditions{"plain": learn.AtLeast(2), "setnx": learn.Is(1)}},
			{Text: learn.Text{EN: "A unique key in the same transaction as the effect; a mark before it can lose the message.", ZH: "唯一键和业务写入放在同一个事务里；事先打的标记反而可能丢消息。"},
				If: learn.Conditions{"plain": learn.AtLeast(2), "setnx": learn.Is(0), "unique": learn.Is(1)}},
		},
		Right: 2,
		Needs: []learn.Need{{Kind: "redis"}, {Kind: "postgres"}},
		Takes: 4 * time.Second,
		Try: func(s *learn.Stand) {
			g := openGate(s, 10, nil)
			st := openStore(s, g)
			db := st.sql()

			s.Step("A consumer commits one row for one message, and is killed before the ack. Another one takes over.", "消费者为一条消息提交了一行，在 ACK 之前被 kill -9；另一个接手。")
			url := s.URL("redis-streams", "claim=1s")
			s.Quietly(func() { s.Open(url) })
			dies := s.Consume(url, node.Consume{CrashPoint: fault.BeforeAck, CrashAtNth: 1})
			sent := s.Produce(url, node.Produce{Count: 1, Senders: 1, Batch: 1})
			sent.Produced()
			dies.Struck()
			next := s.Consume(url, node.Consume{})
			s.Eventually("the message to be taken over", 15*time.Second, func() bool { return s.AccountOf(sent).EffectDuplicates > 0 })
			next.End()
			s.Count("plain", 1+s.AccountOf(sent).EffectDuplicates, "effects of that message", "这条消息生效的次数")

			var q queue.Queue
			var c queue.Consumer
			s.Quietly(func() {
				q = s.Queue("redis-streams", "claim=1s")
				c = s.Consumer(q)
				exec(s, db, "CREATE TABLE effects (message text)")
			})
			redis := s.Redis()
			s.Step("SETNX first, then the transaction, whose connection breaks. The message is given back and comes again.", "先 SETNX，再开事务，提交前数据库连接断开；消息退回后再次投递。")
			s.Publish(q, 1)
			deliveries := int64(0)
			for done := false; !done; deliveries++ {
				d := s.Take(c, 1)[0]
				mark := s.Name("seen-" + d.ID)
				deleteAfter(s, mark)
				if s.Do(redis, "SET", mark, "1", "NX") == nil {
					s.Must(c.Ack(s.Context(), d)) // seen before, so it must have been handled
					done = true
				} else if err := commit(s, st, d.ID, deliveries == 0); err == nil {
					s.Must(c.Ack(s.Context(), d))
					done = true
				} else {
					s.Must(c.Nack(s.Context(), d))
				}
			}
			s.Count("setnx-deliveries", deliveries, "deliveries with SETNX", "SETNX 方案的投递次数")
			s.Count("setnx", number(s, db, "SELECT count(*) FROM effects"), "effects with SETNX", "SETNX 方案生效的次数")

			s.Step("The service's own transaction: the first consumer goes away after the commit, without an ack.", "服务自己的事务：第一个消费者提交后没有 ACK 就离开。")
			r := g.order(g.buyer(1))
			s.Must(s.Publisher(q).Publish(s.Context(), r.Message()))
			deliveries = 0
			handle := func(c queue.Consumer) *queue.Delivery {
				d := s.Take(c, 1)[0]
				got, err := sale.DecodeReservation(d.Body)
				s.Must(err)
				_, err = st.decide(s.Context(), got)
				s.Must(err)
				deliveries++
				return d
			}
			handle(c)
			s.Must(c.Close())
			c = s.Consumer(q)
			s.Must(c.Ack(s.Context(), handle(c)))
			s.Count("deliveries", deliveries, "deliveries of the order", "订单消息的投递次数")
			s.Count("unique", st.standing(s.Context(), []sale.ID{r.OrderID}), "orders with a unique key in the transaction", "事务内唯一键方案的订单")
			s.Count("taken", 10-number(s, db, "SELECT stock_left FROM vouchers"), "units that it took", "它扣掉的库存")
		},
		Expect: learn.Conditions{"setnx-deliveries": learn.Is(2), "deliveries": learn.Is(2), "taken": learn.Is(1)},
		Why: learn.Text{
			EN: "Whoever dies between commit and ack leaves a message that comes again: it took effect {plain} times. A mark set before the transaction says \"handled\" of what was only begun: delivered {setnx-deliveries} times, it took effect {setnx} times, and the order was lost. The service's transaction has both the effect and what makes it unique: {deliveries} deliveries, {unique} order, {taken} unit taken.",
			ZH: "在提交和 ACK 之间死掉，消息会再来一次：生效了 {plain} 次。事务之前打的标记，把“开始处理”当成了“处理完”：投递 {setnx-deliveries} 次，生效 {setnx} 次，订单丢了。服务的事务里既有业务写入也有唯一键：投递 {deliveries} 次，订单 {unique} 个，库存扣 {taken} 件。",
		},
		Say: learn.Text{
			EN: "Delivery is at least once, so I make the effect once: a unique key by message id, inserted in the same transaction as the effect, with ON CONFLICT DO NOTHING, and ack after the commit. A conflict counts as success. A SETNX before the commit is no substitute: it can lose the message.",
			ZH: "投递是至少一次，所以让“生效”只有一次：以消息 ID 为唯一键，和业务写入同一个事务，ON CONFLICT DO NOTHING，提交之后再 ACK。冲突按成功处理。提交之前的 SETNX 代替不了它：会丢消息。",
		},
		Further: []learn.Link{
			{Cell: "redis-streams/aof-everysec consumer-kill-before-ack"},
			{Text: learn.Text{EN: "INSERT … ON CONFLICT in PostgreSQL", ZH: "PostgreSQL 的 INSERT … ON CONFLICT"}, URL: "https://www.postgresql.org/docs/current/sql-insert.html#SQL-ON-CONFLICT"},
		},
	}
}

// commit makes the effect of a message in a transaction of its own, whose
// connection may break before the end.
func commit(s *learn.Stand, st *database, message string, breaks bool) error {
	db := st.sql()
	tx, err := db.BeginTx(s.Context(), nil)
	s.Must(err)
	var session int64
	s.Must(tx.QueryRowContext(s.Context(), "SELECT pg_backend_pid()").Scan(&session))
	_, err = tx.ExecContext(s.Context(), "INSERT INTO effects VALUES ($1)", message)
	s.Must(err)
	if breaks {
		var ended bool
		s.Must(db.QueryRowContext(context.WithoutCancel(s.Context()), "SELECT pg_terminate_backend($1)", session).Scan(&ended))
	}
	return tx.Commit()
}
