package redislist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

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
	// One connection blocks, one lifts the block and pushes back.
	c := &consumer{q: q, client: q.Client(4)}
	c.session = redisconn.NewSession(c.client)
	c.puller = redisconn.NewPuller(c.pop, c.session.Unblock)
	if err := q.Children.Add(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// pop takes at most a batch off the list, however many are asked for: what is
// popped is on nobody's list any more.
func (c *consumer) pop(most int) (values []string, err error) {
	ctx, cancel := c.q.WithinBlock()
	defer cancel()
	err = c.session.Do(ctx, func(ctx context.Context, conn *redis.Conn) error {
		if n := min(most, c.q.batch); n > 1 {
			_, values, err = conn.BLMPop(ctx, redisconn.Block, "right", int64(n), c.q.key).Result()
			return err
		}
		pair, err := conn.BRPop(ctx, redisconn.Block, c.q.key).Result()
		if err == nil {
			values = pair[1:]
		}
		return err
	})
	if errors.Is(err, redis.Nil) {
		return nil, nil // nothing came in time
	}
	if err != nil {
		return nil, fmt.Errorf("redis-list receive: %w", err)
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
		c.session.Close()
		c.err = errors.Join(err, c.client.Close())
		c.q.Children.Remove(c)
	})
	return c.err
}
