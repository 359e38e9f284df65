package queuetest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"queuelab/queue"
)

type fakeConsumer struct {
	q     *fakeQueue
	group string
	once  sync.Once
	done  chan struct{}

	// Guarded by the broker's mutex.
	epoch      int
	subscribed bool
}

func (c *fakeConsumer) subscribe() {
	c.q.b.mu.Lock()
	defer c.q.b.mu.Unlock()
	select {
	case <-c.done:
		return
	default:
	}
	if !c.subscribed {
		c.subscribed = true
		c.q.b.group(c.q.name, c.group).users++
	}
}

var errDown = errors.New("fake broker: connection lost")

func (c *fakeConsumer) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	b := c.q.b
	if max < 1 {
		return nil, errors.New("fake broker: max is below 1")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for {
		if err := b.thawed(ctx); err != nil {
			return nil, err
		}
		b.mu.Lock()
		select {
		case <-c.done:
			b.mu.Unlock()
			return nil, queue.ErrClosed
		default:
		}
		lost := b.down || c.epoch != b.epoch
		if lost && !b.down && b.flaw != staysDead && b.flaw != spins {
			c.epoch = b.epoch // reconnected
			b.group(c.q.name, c.group).users = 1
			lost = false
		} else if lost && b.flaw == spins && !b.down {
			c.epoch = b.epoch
		}
		if lost {
			b.mu.Unlock()
			if b.flaw != spins {
				select {
				case <-time.After(200 * time.Millisecond): // back-off
				case <-c.done:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return nil, errDown
		}
		ds := c.take(b, max)
		change := b.change
		b.mu.Unlock()
		if len(ds) > 0 {
			return ds, nil
		}
		var tick <-chan time.Time
		if b.lease > 0 {
			tick = time.After(b.lease / 4)
		}
		select {
		case <-change:
		case <-tick:
		case <-c.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take holds b.mu through its caller.
func (c *fakeConsumer) take(b *broker, max int) []*queue.Delivery {
	g := b.group(c.q.name, c.group)
	now := time.Now()
	if b.lease > 0 {
		expired := func(it *item) bool { return now.After(it.until) }
		for _, it := range g.held {
			if expired(it) {
				b.giveBack(g, expired)
				break
			}
		}
	}
	if b.flaw == unordered {
		slices.Reverse(g.ready)
	}
	var ds []*queue.Delivery
	for len(ds) < max && len(g.ready) > 0 {
		it := g.ready[0]
		g.ready = g.ready[1:]
		it.attempts++
		it.owner, it.until = c, now.Add(b.lease)
		attempt := map[queue.AttemptCounter]int{
			queue.CountedByBroker: it.attempts,
			queue.FlaggedByBroker: min(it.attempts, 2),
		}[b.caps.Attempts]
		d := queue.NewDelivery(it.Message, attempt, it)
		if b.caps.Guarantee == queue.AtLeastOnce {
			g.held[d] = it
		}
		ds = append(ds, d)
	}
	return ds
}

func (c *fakeConsumer) Ack(ctx context.Context, ds ...*queue.Delivery) error {
	b := c.q.b
	return queue.Settle(ds, func(fresh []*queue.Delivery) error {
		if b.caps.Guarantee == queue.AtMostOnce {
			return nil
		}
		select {
		case <-c.done:
			return queue.ErrClosed
		default:
		}
		if !b.caps.AckConfirmed && b.isFrozen() {
			go func() { // the socket takes it
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
				defer cancel()
				if b.thawed(ctx) == nil {
					c.ack(fresh)
				}
			}()
			return nil
		}
		if err := b.thawed(ctx); err != nil {
			return err
		}
		return c.ack(fresh)
	})
}

func (c *fakeConsumer) ack(ds []*queue.Delivery) error {
	b := c.q.b
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.group(c.q.name, c.group)
	errs := make([]error, len(ds))
	for i, d := range ds {
		it := d.Receipt().(*item)
		switch {
		case g.held[d] != nil:
			delete(g.held, d)
			g.acked = append(g.acked, it)
		case b.caps.LeaseFenced:
			errs[i] = queue.ErrLeaseLost
		default: // as XACK does: whoever has it now, it is gone
			g.ready = slices.DeleteFunc(g.ready, func(x *item) bool { return x == it })
			for d, x := range g.held {
				if x == it {
					delete(g.held, d)
				}
			}
		}
	}
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return &queue.SettleError{Errs: errs}
	}
	return nil
}

func (c *fakeConsumer) Nack(ctx context.Context, ds ...*queue.Delivery) error {
	b := c.q.b
	if !b.caps.Nack {
		return queue.ErrUnsupported
	}
	return queue.Settle(ds, func(fresh []*queue.Delivery) error {
		select {
		case <-c.done:
			return queue.ErrClosed
		default:
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		g := b.group(c.q.name, c.group)
		its := make(map[*item]bool)
		for _, d := range fresh {
			if it := g.held[d]; it != nil {
				its[it] = true
			}
		}
		b.giveBack(g, func(it *item) bool { return its[it] })
		return nil
	})
}

func (c *fakeConsumer) Close() error {
	c.once.Do(func() {
		b := c.q.b
		b.mu.Lock()
		defer b.mu.Unlock()
		close(c.done)
		g := b.group(c.q.name, c.group)
		if c.subscribed {
			g.users--
		}
		b.giveBack(g, func(it *item) bool { return it.owner == c })
		if b.caps.Broadcast {
			delete(b.topics[c.q.name], c.group)
		}
	})
	return nil
}
