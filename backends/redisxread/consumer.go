package redisxread

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/driver"
	"queuelab/backends/internal/envelope"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

type consumer struct {
	q       *xread
	client  *redis.Client
	session *redisconn.Session
	puller  *driver.Puller[*entry]
	commits *driver.Coalescer[struct{}, error]
	once    sync.Once
	err     error

	// Only for the goroutine that reads.
	last place // the last entry read

	mu     sync.Mutex
	closed bool
	done   place            // up to which all are acked
	saved  place            // what Redis has of it
	beyond map[int64]string // acked beyond one that is not: ids by number
}

// entry is one delivery to this consumer, and its receipt.
type entry struct {
	redisconn.Entry
	n        int64 // counted from the stream's first
	consumer *consumer
}

// Consumer implements queue.Queue. With from=$ it sees new messages only while a
// Receive waits.
func (q *xread) Consumer(ctx context.Context) (queue.Consumer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := &consumer{q: q, client: q.Client(3), beyond: map[int64]string{}}
	c.session = redisconn.NewSession(q.Server, c.client)
	c.puller = driver.NewPuller(c.read, c.session.Unblock)
	c.commits = driver.NewCoalescer(1000, func(struct{}) int { return 0 }, c.commit)
	err := q.Children.Keep(c, func() (err error) {
		if q.tracked {
			c.last, err = q.place(ctx, c.client)
			c.done, c.saved = c.last, c.last
		}
		return q.Wrap("consumer", err)
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// read is one XREAD. It takes nothing away from anybody, so more than what is
// asked for may be read.
func (c *consumer) read(int) (es []*entry, err error) {
	from := "$"
	if c.q.tracked {
		from = c.last.id
	}
	reply, err := c.session.Do("xread", "count", c.q.count, "block", redisconn.Block.Milliseconds(), "streams", c.q.stream, from)
	if err == nil {
		err = reply.Streams(func(_ string, read []redisconn.Entry) {
			for _, e := range read {
				c.last = place{e.ID, c.last.n + 1}
				es = append(es, &entry{e, c.last.n, c})
			}
		})
	}
	if err != nil {
		return nil, fmt.Errorf("redis-xread receive: %w", err)
	}
	return es, nil
}

// Receive implements queue.Consumer. An entry that is not a message is passed
// over, and is an error of the call after those that are.
func (c *consumer) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	es, err := c.puller.Receive(ctx, max)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, e := range es {
		size += len(e.Value)
	}
	bodies, all, ds := make([]byte, 0, size), make([]queue.Delivery, len(es)), make([]*queue.Delivery, 0, len(es))
	var foreign error
	for i, e := range es {
		m, err := envelope.Decode(e.Value, &bodies)
		if err != nil {
			foreign = fmt.Errorf("redis-xread receive: entry %s of %s is passed over: %w", e.ID, c.q.stream, err)
			c.finish([]*entry{e})
			continue
		}
		all[i].Init(m, 0, e)
		ds = append(ds, &all[i])
	}
	if len(ds) == 0 {
		return nil, foreign
	}
	if foreign != nil {
		c.puller.Fail(foreign)
	}
	return ds, nil
}

// finish marks entries as done, and reports whether Redis is to hear of it: not
// of those beyond one that is not done.
func (c *consumer) finish(es []*entry) (news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range es {
		if e.n > c.done.n {
			c.beyond[e.n] = e.ID
		}
	}
	for {
		id, ok := c.beyond[c.done.n+1]
		if !ok {
			break
		}
		c.done = place{id, c.done.n + 1}
		delete(c.beyond, c.done.n)
	}
	for _, e := range es {
		news = news || e.n <= c.done.n && e.n > c.saved.n
	}
	return news
}

// commit writes down how far this consumer has got, for all who wait for that.
func (c *consumer) commit(_ []struct{}, results []error) {
	c.mu.Lock()
	to := c.done
	c.mu.Unlock()
	ctx, cancel := c.q.Within()
	defer cancel()
	err := c.q.advance(ctx, c.client, to)
	if err != nil {
		err = c.q.Wrap("ack", err)
	} else {
		c.mu.Lock()
		c.saved = to
		c.mu.Unlock()
	}
	for i := range results {
		results[i] = err
	}
}

// Ack implements queue.Consumer. With from=$ nothing is kept, and it never fails.
func (c *consumer) Ack(ctx context.Context, ds ...*queue.Delivery) error {
	return queue.Settle(ds, func(fresh []*queue.Delivery) error {
		if !c.q.tracked {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c.mu.Lock()
		closed := c.closed
		c.mu.Unlock()
		if closed {
			return queue.ErrClosed
		}
		es, err := driver.Receipts(fresh, func(e *entry) bool { return e.consumer == c })
		if err != nil {
			return err
		}
		if !c.finish(es) {
			return nil
		}
		results, _, err := c.commits.Do(ctx, []struct{}{{}})
		if err != nil {
			return err
		}
		return results[0]
	})
}

// Nack implements queue.Consumer.
func (c *consumer) Nack(context.Context, ...*queue.Delivery) error { return queue.ErrUnsupported }

// Close implements queue.Consumer. What is not acked comes again to the next
// consumer of the name.
func (c *consumer) Close() error {
	c.once.Do(func() {
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		c.puller.Close()
		c.commits.Close(c.q.Timeout)
		c.err = errors.Join(c.session.Close(), c.client.Close())
		c.q.Children.Remove(c)
	})
	return c.err
}
