package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"queuelab/queue"
)

// env is what one case works with.
type env struct {
	testing.TB
	h      Harness
	caps   queue.Capabilities
	ctx    context.Context // ends with the case
	cancel context.CancelFunc
	name   string
	quiet  time.Duration // a wait for what must not come
	prompt time.Duration // how long "promptly" may take on a slow machine

	mu     sync.Mutex
	queues []handle
	n      int
}

type handle struct {
	queue.Queue
	name string
}

// open opens a handle on the queue of this case.
func (e *env) open(params ...string) queue.Queue { return e.openNamed(e.name, params...) }

func (e *env) openNamed(name string, params ...string) queue.Queue {
	e.Helper()
	q := e.h.Open(e.TB, name, params...)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queues = append(e.queues, handle{q, name})
	return q
}

// deleteAll removes every queue of this case from the broker.
func (e *env) deleteAll() {
	ctx, cancel := context.WithTimeout(context.Background(), e.h.Arrival)
	defer cancel()
	e.mu.Lock()
	qs := slices.Clone(e.queues)
	e.mu.Unlock()
	for _, q := range qs {
		err := q.Delete(ctx)
		if errors.Is(err, queue.ErrClosed) {
			// The case closed this handle; what it stood for must still go.
			err = e.openNamed(q.name).Delete(ctx)
		}
		if err != nil {
			e.Errorf("delete the queue: %v", err)
		}
	}
}

func (e *env) closeAll() {
	e.mu.Lock()
	qs := e.queues
	e.queues = nil
	e.mu.Unlock()
	for _, q := range qs {
		e.within(e.h.Arrival, "Queue.Close", func() {
			if err := q.Close(); err != nil {
				e.Errorf("close the queue: %v", err)
			}
		})
	}
}

func (e *env) publisher(q queue.Queue) queue.Publisher {
	e.Helper()
	ctx, cancel := e.deadline(2 * e.h.Arrival)
	defer cancel()
	p, err := q.Publisher(ctx)
	if err != nil {
		e.Fatalf("open a publisher: %v", err)
	}
	return p
}

func (e *env) consumer(q queue.Queue) queue.Consumer {
	e.Helper()
	ctx, cancel := e.deadline(2*e.h.Arrival + e.h.Redelivery)
	defer cancel()
	c, err := q.Consumer(ctx)
	if err != nil {
		e.Fatalf("open a consumer: %v", err)
	}
	return c
}

// both opens a consumer and then a publisher, since not every queue stores.
func (e *env) both(q queue.Queue) (queue.Consumer, queue.Publisher) {
	e.Helper()
	c := e.consumer(q)
	return c, e.publisher(q)
}

// msgs makes n messages with ids that are new in this case.
func (e *env) msgs(n int, key string) []queue.Message {
	e.mu.Lock()
	defer e.mu.Unlock()
	ms := make([]queue.Message, n)
	for i := range ms {
		e.n++
		id := fmt.Sprintf("m%d", e.n)
		ms[i] = queue.Message{ID: id, Key: key, Body: []byte("body of " + id)}
	}
	return ms
}

func (e *env) publish(p queue.Publisher, ms ...queue.Message) {
	e.Helper()
	ctx, cancel := e.deadline(e.h.Arrival)
	defer cancel()
	if err := p.Publish(ctx, ms...); err != nil {
		e.Fatalf("publish %d messages: %v", len(ms), err)
	}
}

func (e *env) ack(c queue.Consumer, ds ...*queue.Delivery) {
	e.Helper()
	ctx, cancel := e.deadline(e.h.Arrival)
	defer cancel()
	if err := c.Ack(ctx, ds...); err != nil {
		e.Fatalf("ack %d deliveries: %v", len(ds), err)
	}
}

func (e *env) close(what string, c interface{ Close() error }) {
	e.Helper()
	e.within(e.h.Arrival, what+".Close", func() {
		if err := c.Close(); err != nil {
			e.Errorf("close the %s: %v", what, err)
		}
	})
}

// within fails the case when f is not done in time.
func (e *env) within(d time.Duration, what string, f func()) bool {
	e.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-time.After(d):
		e.Errorf("%s is still blocked after %v", what, d)
		return false
	}
}

type received struct {
	ds  []*queue.Delivery
	err error
}

func receive(ctx context.Context, c queue.Consumer, max int) chan received {
	ch := make(chan received, 1)
	go func() {
		ds, err := c.Receive(ctx, max)
		ch <- received{ds, err}
	}()
	return ch
}

// take receives exactly n deliveries and settles none.
func (e *env) take(c queue.Consumer, n int) []*queue.Delivery {
	e.Helper()
	return e.takeWithin(c, n, e.h.Arrival)
}

// takeAgain is take for messages that somebody else left unsettled.
func (e *env) takeAgain(c queue.Consumer, n int) []*queue.Delivery {
	e.Helper()
	return e.takeWithin(c, n, e.h.Arrival+e.h.Redelivery)
}

func (e *env) takeWithin(c queue.Consumer, n int, limit time.Duration) []*queue.Delivery {
	e.Helper()
	ctx, cancel := e.deadline(limit)
	defer cancel()
	var all []*queue.Delivery
	for len(all) < n {
		ds, err := c.Receive(ctx, n-len(all))
		all = append(all, ds...)
		if err != nil {
			e.Fatalf("received %d of %d messages (%s), then: %v", len(all), n, some(ids(all)), err)
		}
	}
	return all
}

// nothing asserts that no message comes for that long.
func (e *env) nothing(c queue.Consumer, d time.Duration) {
	e.Helper()
	ctx, cancel := e.deadline(d)
	defer cancel()
	ds, err := c.Receive(ctx, 100)
	switch {
	case len(ds) > 0:
		e.Errorf("got %d more deliveries (%s), want none: a message was delivered twice, or was never published", len(ds), some(ids(ds)))
		c.Ack(e.ctx, ds...)
	case err != context.DeadlineExceeded:
		e.Errorf("Receive without messages: got error %v, want context.DeadlineExceeded as it is", err)
	}
}

// poll receives what is there, and reports true when nothing comes for long
// enough to say that nothing will.
func (e *env) poll(c queue.Consumer) ([]*queue.Delivery, bool) {
	e.Helper()
	ctx, cancel := e.deadline(e.h.Redelivery + e.quiet)
	defer cancel()
	ds, err := c.Receive(ctx, 64)
	if err != nil && err != context.DeadlineExceeded {
		e.Errorf("receive: %v", err)
	}
	return ds, err != nil
}

// drain acks everything that is left.
func (e *env) drain(c queue.Consumer) {
	e.Helper()
	for {
		ds, done := e.poll(c)
		if done {
			return
		}
		e.ack(c, ds...)
	}
}

func (e *env) deadline(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(e.ctx, d)
}

// collect receives with all consumers at once and acks, until every wanted
// message has come, and fails the case for each that is lost, comes twice or
// was never asked for.
func (e *env) collect(want []queue.Message, cs ...queue.Consumer) []*queue.Delivery {
	e.Helper()
	return e.collectWithin(e.h.Arrival, want, cs...)
}

// collectAgain is collect for messages that somebody else left unsettled.
func (e *env) collectAgain(want []queue.Message, cs ...queue.Consumer) []*queue.Delivery {
	e.Helper()
	return e.collectWithin(e.h.Arrival+e.h.Redelivery, want, cs...)
}

func (e *env) collectWithin(limit time.Duration, want []queue.Message, cs ...queue.Consumer) []*queue.Delivery {
	e.Helper()
	t := newTally(want)
	ctx, cancel := e.deadline(limit)
	defer cancel()
	var wg sync.WaitGroup
	for _, c := range cs {
		wg.Go(func() {
			for !t.complete() {
				ds, err := c.Receive(ctx, 64)
				if t.add(ds) {
					cancel()
				}
				if len(ds) > 0 {
					if err := c.Ack(e.ctx, ds...); err != nil {
						e.Errorf("ack %d deliveries: %v", len(ds), err)
						return
					}
				}
				if err != nil {
					if ctx.Err() == nil || err != ctx.Err() {
						e.Errorf("receive: %v", err)
					}
					return
				}
			}
		})
	}
	wg.Wait()
	t.report(e, limit)
	return t.all
}
