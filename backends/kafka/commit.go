package kafka

import (
	"context"
	"errors"
	"time"

	"queuelab/queue"
)

// receiveBefore commits what it is about to return. What a call that ended too
// early has taken is kept for the next one.
func (c *consumer) receiveBefore(ctx context.Context, max int) ([]*queue.Delivery, error) {
	for {
		if len(c.taken) == 0 {
			ds, err := c.await(ctx, max)
			if err != nil {
				return nil, err
			}
			c.taken = ds
		}
		now := c.taken[:min(max, len(c.taken))]
		err := c.settle(ctx, now)
		var each *queue.SettleError
		if err != nil && !errors.As(err, &each) {
			return nil, err
		}
		var ready, left []*queue.Delivery
		var cause error
		for i, d := range now {
			switch {
			case each == nil || each.Errs[i] == nil:
				ready = append(ready, d)
			case errors.Is(each.Errs[i], queue.ErrLeaseLost): // whoever has its partition now gets it
			default:
				left, cause = append(left, d), each.Errs[i]
			}
		}
		c.taken = append(left, c.taken[len(now):]...)
		if len(ready) > 0 {
			return ready, nil
		}
		if cause != nil {
			if ctx.Err() == nil && !errors.Is(cause, queue.ErrClosed) {
				_ = pause(ctx, errorEvery) // or a loop over Receive would spin
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return nil, cause
		}
	}
}

// handedOut notes, under the lock, what Receive is about to return.
func (c *consumer) handedOut(ds []*queue.Delivery) {
	switch c.q.commit {
	case commitAuto:
		finish(ds)
	case commitPoll:
		c.returned = append(c.returned, ds...)
	}
}

// polled notes, as a Receive begins, that what was returned before is done.
func (c *consumer) polled() {
	c.mu.Lock()
	defer c.mu.Unlock()
	finish(c.returned)
	c.returned = c.returned[:0]
}

// handled is all that an Ack means where it does not commit: with commit=poll no
// other Receive is needed to say so.
func (c *consumer) handled(ds []*queue.Delivery) error {
	if c.q.commit == commitPoll {
		c.mu.Lock()
		defer c.mu.Unlock()
		finish(ds)
	}
	return nil
}

func finish(ds []*queue.Delivery) {
	for _, d := range ds {
		r := d.Receipt().(*receipt)
		r.part.done(r.offset)
	}
}

// tick commits what is done, whoever said so. A commit that failed is tried
// again with the next.
func (c *consumer) tick() {
	every := time.NewTicker(c.q.commitInterval)
	defer every.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-every.C:
		}
		c.mu.Lock()
		if g := c.current; g != nil {
			g.commitDone()
		}
		c.mu.Unlock()
	}
}

// commitDone begins to commit what is done and not committed, under the lock.
// Nil: that is nothing, or it is too late.
func (g *generation) commitDone() *answer {
	if g.over {
		return nil
	}
	for _, p := range g.parts {
		if !p.lost && p.track.next > p.committed {
			return g.nextCommit()
		}
	}
	return nil
}

// commitReturned commits what Receive has returned, as the consumer closes. What
// cannot be committed in time comes again.
func (c *consumer) commitReturned() {
	c.polled()
	c.mu.Lock()
	var last *answer
	if g := c.current; g != nil {
		last = g.commitDone()
	}
	c.mu.Unlock()
	if last == nil {
		return
	}
	limit := time.NewTimer(c.q.timeout)
	defer limit.Stop()
	select {
	case <-last.done:
	case <-limit.C:
	}
}
