package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"queuelab/queue"
)

type consumer struct {
	m    *memory
	once sync.Once
	done chan struct{}
	held map[*queue.Delivery]*entry // guarded by m.mu
}

// Receive implements queue.Consumer.
func (c *consumer) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	if max < 1 {
		return nil, fmt.Errorf("memory: receive: max is %d, want at least 1", max)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for {
		ds, err := c.take(max)
		if len(ds) > 0 || err != nil {
			return ds, err
		}
		select {
		case <-c.m.notEmpty:
		case <-c.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take returns up to max messages, or none when there are none.
func (c *consumer) take(max int) ([]*queue.Delivery, error) {
	m := c.m
	m.mu.Lock()
	defer m.mu.Unlock()
	ready := len(m.returned) + len(m.fresh)
	n := min(max, ready)
	select {
	case <-c.done:
		n = 0
	default:
	}
	if ready > n {
		pass(m.notEmpty)
	}
	if n == 0 {
		select {
		case <-c.done:
			return nil, queue.ErrClosed
		default:
			return nil, nil
		}
	}
	ds := make([]*queue.Delivery, n)
	for i := range ds {
		e := m.next()
		e.attempts++
		ds[i] = queue.NewDelivery(e.Message, e.attempts, nil)
		c.held[ds[i]] = e
	}
	return ds, nil
}

// Ack implements queue.Consumer.
func (c *consumer) Ack(ctx context.Context, ds ...*queue.Delivery) error {
	return c.settle(ctx, "ack", ds, func(es []*entry) {
		c.m.size -= len(es)
		pass(c.m.notFull)
	})
}

// Nack implements queue.Consumer.
func (c *consumer) Nack(ctx context.Context, ds ...*queue.Delivery) error {
	return c.settle(ctx, "nack", ds, c.m.giveBack)
}

var errNotHeld = errors.New("this consumer does not hold the delivery")

// settle calls do, under the lock, with what the deliveries stand for.
func (c *consumer) settle(ctx context.Context, op string, ds []*queue.Delivery, do func([]*entry)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return queue.Settle(ds, func(fresh []*queue.Delivery) error {
		c.m.mu.Lock()
		defer c.m.mu.Unlock()
		select {
		case <-c.done:
			return fmt.Errorf("memory: %s: %w", op, queue.ErrClosed)
		default:
		}
		es := make([]*entry, 0, len(fresh))
		errs := make([]error, len(fresh))
		for i, d := range fresh {
			e, ok := c.held[d]
			if !ok {
				errs[i] = fmt.Errorf("memory: %s: %w", op, errNotHeld)
				continue
			}
			delete(c.held, d)
			es = append(es, e)
		}
		do(es)
		if len(es) < len(fresh) {
			return &queue.SettleError{Errs: errs}
		}
		return nil
	})
}

// Close implements queue.Consumer.
func (c *consumer) Close() error {
	c.once.Do(func() {
		c.m.mu.Lock()
		defer c.m.mu.Unlock()
		close(c.done)
		delete(c.m.open, c)
		es := make([]*entry, 0, len(c.held))
		for _, e := range c.held {
			es = append(es, e)
		}
		clear(c.held)
		c.m.giveBack(es)
	})
	return nil
}
