package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"queuelab/backends/internal/driver"
	"queuelab/queue"
)

type consumer struct {
	q       *table
	holder  int64    // its name in the rows that it holds
	reads   *session // claims, and hears the bell
	settles *session
	puller  *driver.Puller[*claim]
	shared  *driver.Coalescer[settling, error]
	once    sync.Once
	err     error

	mu    sync.Mutex
	rouse context.CancelFunc  // ends a wait under way; nil: there is none
	held  map[*claim]struct{} // claimed and not settled
}

// attempt names one delivery of one row.
type attempt struct {
	seq    int64
	number int32
}

// claim is a row in this consumer's hand.
type claim struct {
	attempt
	message queue.Message
}

// Consumer implements queue.Queue.
func (q *table) Consumer(ctx context.Context) (queue.Consumer, error) {
	hello := ""
	if q.notify {
		hello = q.sql.listen
	}
	c := &consumer{q: q, holder: rand.Int64(), reads: newSession(q.server, hello), settles: newSession(q.server, ""), held: map[*claim]struct{}{}}
	if err := q.connected(ctx, c.reads); err != nil {
		return nil, err
	}
	c.puller = driver.NewPuller(c.read, c.unblock)
	c.shared = driver.NewCoalescer(1000, func(settling) int { return 1 }, c.settleAll)
	if err := q.children.Keep(c); err != nil {
		return nil, err
	}
	return c, nil
}

// Receive implements queue.Consumer.
func (c *consumer) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	return driver.Receive(ctx, c.puller, max, func(k *claim) (queue.Message, int) { return k.message, int(k.number) })
}

// read claims at most so many rows, and waits where there are none.
func (c *consumer) read(most int) ([]*claim, error) {
	c.reads.rung.Store(false)
	claims, err := c.claim(min(most, c.q.batch))
	if err == nil && len(claims) == 0 {
		err = c.wait()
	}
	if err != nil {
		return nil, fmt.Errorf("postgres receive: %w", err)
	}
	return claims, nil
}

func (c *consumer) claim(most int) (claims []*claim, err error) {
	// No caller's context: one that ends could lose what was claimed.
	ctx, cancel := context.WithTimeout(context.Background(), c.q.timeout)
	defer cancel()
	err = c.reads.do(ctx, func(conn *pgx.Conn) error {
		b := &pgx.Batch{}
		if c.q.byKey {
			b.Queue(lock, "claim "+c.q.name)
		}
		b.Queue(c.q.sql.claim, most, c.q.lease, c.holder)
		r := conn.SendBatch(ctx, b)
		if c.q.byKey {
			if _, err := r.Exec(); err != nil {
				_ = r.Close() // says the same
				return err
			}
		}
		rows, _ := r.Query() // CollectRows has its error
		claims, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (*claim, error) {
			k := &claim{}
			m := &k.message
			return k, row.Scan(&k.seq, &k.number, &m.ID, &m.Key, &m.Headers, &m.Body)
		})
		if end := r.Close(); err == nil { // the commit
			err = end
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range claims {
		c.held[k] = struct{}{}
	}
	return claims, nil
}

// wait returns after a poll, or earlier: when the bell rings, or nobody waits.
func (c *consumer) wait() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.q.poll)
	defer cancel()
	c.mu.Lock()
	c.rouse = cancel
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.rouse = nil
		c.mu.Unlock()
	}()
	if !c.q.notify {
		<-ctx.Done()
		return nil
	}
	err := c.reads.do(ctx, func(conn *pgx.Conn) error {
		if c.reads.rung.Load() { // while it claimed
			return nil
		}
		_, err := conn.WaitForNotification(ctx)
		return err
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (c *consumer) unblock() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rouse != nil {
		c.rouse()
	}
}

// Close implements queue.Consumer. What was claimed and never received has not
// been attempted.
func (c *consumer) Close() error {
	c.once.Do(func() {
		unseen := c.puller.Close()
		c.shared.Close(closePatience)
		if err := c.giveBack(unseen); err != nil {
			c.err = fmt.Errorf("postgres close: %d messages come again only after the lease of %v: %w", len(c.held), c.q.lease, err)
		}
		c.reads.close()
		c.settles.close()
		c.q.children.Remove(c)
	})
	return c.err
}

func (c *consumer) giveBack(unseen []*claim) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.held) == 0 {
		return nil
	}
	var cs claimArgs
	for k := range c.held {
		cs.add(k)
	}
	for _, k := range unseen {
		cs.unseen[cs.index[k]] = 1
	}
	_, err := c.exec(c.q.sql.nack, cs.seqs, cs.attempts, c.holder, cs.unseen)
	const undefinedTable = "42P01"
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == undefinedTable {
		return nil // deleted, and what was held with it
	}
	if err != nil {
		return err
	}
	c.q.bell.ring()
	return nil
}
