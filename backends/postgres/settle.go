package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"queuelab/backends/internal/driver"
	"queuelab/queue"
)

// settling is what is to be done to one claim.
type settling struct {
	claim *claim
	back  bool // a nack; otherwise an ack
}

// claimArgs are claims as the arrays that a statement takes.
type claimArgs struct {
	seqs             []int64
	attempts, unseen []int32 // unseen is 1 where the attempt is to be taken back
	index            map[*claim]int
}

func (a *claimArgs) add(k *claim) {
	if a.index == nil {
		a.index = map[*claim]int{}
	}
	a.index[k] = len(a.seqs)
	a.seqs, a.attempts, a.unseen = append(a.seqs, k.seq), append(a.attempts, k.number), append(a.unseen, 0)
}

// Ack implements queue.Consumer.
func (c *consumer) Ack(ctx context.Context, ds ...*queue.Delivery) error {
	return c.settle(ctx, ds, false)
}

// Nack implements queue.Consumer.
func (c *consumer) Nack(ctx context.Context, ds ...*queue.Delivery) error {
	return c.settle(ctx, ds, true)
}

func (c *consumer) settle(ctx context.Context, ds []*queue.Delivery, back bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return queue.Settle(ds, func(fresh []*queue.Delivery) error {
		claims, err := driver.Receipts(fresh, func(*claim) bool { return true }) // the statement knows whose it is
		if err != nil {
			return err
		}
		items := make([]settling, len(fresh))
		for i, k := range claims {
			items[i] = settling{k, back}
		}
		errs, _, err := c.shared.Do(ctx, items)
		if err != nil {
			return err
		}
		return driver.Each(errs)
	})
}

// settleAll is one statement for the acks and one for the nacks.
func (c *consumer) settleAll(items []settling, errs []error) {
	for _, back := range []bool{false, true} {
		var cs claimArgs
		for _, s := range items {
			if s.back == back {
				cs.add(s.claim)
			}
		}
		if len(cs.seqs) == 0 {
			continue
		}
		op, sql, args := "ack", c.q.sql.ack, []any{cs.seqs, cs.attempts, c.holder}
		if back {
			op, sql, args = "nack", c.q.sql.nack, append(args, cs.unseen)
		}
		settled, err := c.exec(sql, args...)
		if err == nil && (back || c.q.byKey) {
			c.q.bell.ring() // there may be something to claim now
		}
		for i, s := range items {
			switch {
			case s.back != back:
			case err != nil:
				errs[i] = fmt.Errorf("postgres %s: %w", op, err)
			case !settled[s.claim.attempt]:
				errs[i] = fmt.Errorf("postgres %s: message %s: %w", op, s.claim.message.ID, queue.ErrLeaseLost)
			}
		}
		if err == nil {
			c.mu.Lock()
			for k := range cs.index {
				delete(c.held, k)
			}
			c.mu.Unlock()
		}
	}
}

// exec runs a statement that tells the attempts whose rows it changed.
func (c *consumer) exec(sql string, args ...any) (changed map[attempt]bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.q.timeout)
	defer cancel()
	err = c.settles.do(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		changed = map[attempt]bool{}
		var a attempt
		_, err = pgx.ForEachRow(rows, []any{&a.seq, &a.number}, func() error {
			changed[a] = true
			return nil
		})
		return err
	})
	return changed, err
}
