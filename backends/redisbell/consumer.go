package redisbell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/driver"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

type consumer struct {
	q      *bell
	client *redis.Client
	puller *driver.Puller[string]
	ear    *ear
	once   sync.Once
	err    error

	// Only for the goroutine that reads.
	waiting bool          // it has looked, found nothing, and subscribed
	again   chan struct{} // signalled: the next read looks first
	look    time.Time     // with poll: when to look again
}

// Consumer implements queue.Queue.
func (q *bell) Consumer(ctx context.Context) (queue.Consumer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := &consumer{q: q, client: q.Client(3), again: make(chan struct{}, 1)}
	c.ear = newEar(q, c.client)
	c.puller = driver.NewPuller(c.read, func() { driver.Signal(c.again) })
	if err := q.Children.Keep(c); err != nil {
		return nil, err
	}
	return c, nil
}

// read is a look, or a piece of the wait after a look that found nothing.
func (c *consumer) read(most int) (values []string, err error) {
	if !c.waiting {
		select {
		case <-c.again: // of an earlier wait
		default:
		}
		if values, err = c.pop(most); len(values) > 0 || err != nil {
			return values, c.wrap(err)
		}
		// From the look to the subscription nobody hears the bell.
		if err = c.ear.begin(); err != nil {
			return nil, c.wrap(err)
		}
		c.waiting, c.look = true, time.Now().Add(c.q.poll)
	}
	pause := redisconn.Block
	if c.q.poll > 0 {
		pause = min(pause, time.Until(c.look))
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-c.ear.rung:
		c.waiting = false
	case err = <-c.ear.broken:
		c.waiting, err = false, fmt.Errorf("the bell's connection broke, what was rung meanwhile was not heard: %w", err)
	case <-c.again: // a Receive has gone, and the next one looks first
		c.waiting = false
	case <-timer.C:
		c.waiting = c.q.poll == 0 || time.Now().Before(c.look)
	}
	if !c.waiting {
		err = cmp.Or(err, c.ear.end())
	}
	return nil, c.wrap(err)
}

func (c *consumer) wrap(err error) error {
	if err != nil {
		err = fmt.Errorf("redis-bell receive: %w", err)
	}
	return err
}

// pop takes at most a batch off the list.
func (c *consumer) pop(most int) ([]string, error) {
	ctx, cancel := c.q.Within()
	defer cancel()
	n := min(most, c.q.batch)
	if n > 1 {
		values, err := c.client.RPopCount(ctx, c.q.list, n).Result()
		return values, unlessNil(err)
	}
	value, err := c.client.RPop(ctx, c.q.list).Result()
	if err != nil {
		return nil, unlessNil(err)
	}
	return []string{value}, nil
}

func unlessNil(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// Receive implements queue.Consumer. A value that is not a message is an error
// of the call after those that are; it is off the list then.
func (c *consumer) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	values, err := c.puller.Receive(ctx, max)
	if err != nil {
		return nil, err
	}
	return redisconn.Deliver(c.puller, values, func(n int, err error) error {
		return fmt.Errorf("redis-bell receive: dropped %d values of %s: %w", n, c.q.list, err)
	})
}

// Ack implements queue.Consumer. The message left the list when it was popped,
// so this settles it in this process, and never fails.
func (c *consumer) Ack(_ context.Context, ds ...*queue.Delivery) error {
	return queue.Settle(ds, func([]*queue.Delivery) error { return nil })
}

// Nack implements queue.Consumer.
func (c *consumer) Nack(context.Context, ...*queue.Delivery) error { return queue.ErrUnsupported }

// Close implements queue.Consumer. What was popped for a Receive that had gone
// is pushed back to the end that it came from, and rings for the others.
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
			e := c.client.RPush(ctx, c.q.list, args...).Err()
			if e == nil {
				e = c.client.Publish(ctx, c.q.channel, "").Err()
			}
			if e != nil {
				err = fmt.Errorf("redis-bell close: push %d unreceived messages back: %w", len(rest), e)
			}
		}
		c.ear.close()
		c.err = errors.Join(err, c.client.Close())
		c.q.Children.Remove(c)
	})
	return c.err
}
