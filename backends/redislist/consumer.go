package redislist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/envelope"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

type consumer struct {
	q       *list
	client  *redis.Client
	session *redisconn.Session
	puller  *redisconn.Puller[string]
	once    sync.Once
	err     error
}

// Consumer implements queue.Queue.
func (q *list) Consumer(ctx context.Context) (queue.Consumer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := &consumer{q: q, client: q.Client(2)} // lifts the session's block, and pushes back
	c.session = redisconn.NewSession(q.Server, c.client)
	c.puller = redisconn.NewPuller(c.pop, c.session.Unblock)
	if err := q.Children.Add(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// pop takes at most a batch off the list, however many are asked for: what is
// popped is on nobody's list any more.
func (c *consumer) pop(most int) (values []string, err error) {
	seconds := int(redisconn.Block / time.Second)
	var reply redisconn.Reply
	n := min(most, c.q.batch)
	if n > 1 {
		reply, err = c.session.Do("blmpop", seconds, 1, c.q.key, "right", "count", n)
	} else {
		reply, err = c.session.Do("brpop", c.q.key, seconds)
	}
	if err == nil {
		values, err = popped(reply, n > 1)
	}
	if err != nil {
		return nil, fmt.Errorf("redis-list receive: %w", err)
	}
	return values, nil
}

// popped reads the answer to a pop: the key with a value, or with an array of
// them; none when nothing came in time.
func popped(r redisconn.Reply, many bool) ([]string, error) {
	n, err := r.Array()
	if n < 0 || err != nil {
		return nil, err
	}
	if _, err = r.Text(); err != nil {
		return nil, err
	}
	n = 1
	if many {
		if n, err = r.Array(); err != nil {
			return nil, err
		}
	}
	values := make([]string, n)
	for i := range values {
		if values[i], err = r.Text(); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// Receive implements queue.Consumer. A value that is not a message is an error
// of the call after those that are; it is off the list then.
func (c *consumer) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	values, err := c.puller.Receive(ctx, max)
	if err != nil {
		return nil, err
	}
	ds, foreign, err := envelope.Deliveries(values)
	if foreign == 0 {
		return ds, nil
	}
	err = fmt.Errorf("redis-list receive: dropped %d values of %s: %w", foreign, c.q.key, err)
	if len(ds) == 0 {
		return nil, err
	}
	c.puller.Fail(err)
	return ds, nil
}

// Ack implements queue.Consumer. The message left the list when it was popped,
// so this settles it in this process, and never fails.
func (c *consumer) Ack(_ context.Context, ds ...*queue.Delivery) error {
	return queue.Settle(ds, func([]*queue.Delivery) error { return nil })
}

// Nack implements queue.Consumer.
func (c *consumer) Nack(context.Context, ...*queue.Delivery) error { return queue.ErrUnsupported }

// Close implements queue.Consumer. What was popped for a Receive that had gone
// is pushed back to the end that it came from.
func (c *consumer) Close() error {
	c.once.Do(func() {
		rest := c.puller.Close()
		var err error
		if len(rest) > 0 {
			slices.Reverse(rest) // the first popped must be the next popped
			args := make([]any, len(rest))
			for i, v := range rest {
				args[i] = v
			}
			ctx, cancel := c.q.Within()
			defer cancel()
			if e := c.client.RPush(ctx, c.q.key, args...).Err(); e != nil {
				err = fmt.Errorf("redis-list close: push %d unreceived messages back: %w", len(rest), e)
			}
		}
		c.err = errors.Join(err, c.session.Close(), c.client.Close())
		c.q.Children.Remove(c)
	})
	return c.err
}
