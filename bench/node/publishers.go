package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"queuelab/bench/ledger"
	"queuelab/bench/load"
	"queuelab/queue"
)

// turns lets several publishers take turns, call by call.
type turns struct {
	publishers []queue.Publisher
	next       atomic.Uint64
}

// Publish implements queue.Publisher.
func (t *turns) Publish(ctx context.Context, msgs ...queue.Message) error {
	return t.publishers[t.next.Add(1)%uint64(len(t.publishers))].Publish(ctx, msgs...)
}

// Close implements queue.Publisher.
func (t *turns) Close() error {
	var errs []error
	for _, p := range t.publishers {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// slowQueue takes a share longer, on purpose, so that a comparison can be seen to
// find it. Each Publish returns that share later, and each message is delivered
// with so much more of its age. A load in a closed loop does not notice that, so
// there the clients stand still for as much of the time as makes all of it a
// share longer. What it waits for costs no CPU.
type slowQueue struct {
	queue.Queue
	share  float64
	closed bool
	sent   *sync.Map // message id: when its Publish began, as of ledger.Now
}

func slowed(q queue.Queue, share float64, closed bool) queue.Queue {
	return slowQueue{q, share, closed, &sync.Map{}}
}

// Publisher implements queue.Queue.
func (q slowQueue) Publisher(ctx context.Context) (queue.Publisher, error) {
	p, err := q.Queue.Publisher(ctx)
	return slowPublisher{p, q}, err
}

// Consumer implements queue.Queue.
func (q slowQueue) Consumer(ctx context.Context) (queue.Consumer, error) {
	c, err := q.Queue.Consumer(ctx)
	if err != nil || q.closed {
		return slowConsumer{c, q}, err
	}
	pumping, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &lateConsumer{Consumer: c, stop: stop, line: make(chan late, 1<<16)}
	go l.pump(pumping, q)
	return l, nil
}

// later is the end of a time that began then, a share longer than until now.
func (q slowQueue) later(began int64) int64 {
	return began + int64((1+q.share)*float64(ledger.Now()-began))
}

// stand waits out the part of every ten milliseconds in which all clients stand
// still.
func (q slowQueue) stand(ctx context.Context) error {
	const period = int64(10 * time.Millisecond)
	still := int64(q.share / (1 + q.share) * float64(period))
	now := ledger.Now()
	return load.WaitUntil(ctx, now-now%period+still)
}

type slowPublisher struct {
	queue.Publisher
	q slowQueue
}

// Publish implements queue.Publisher.
func (p slowPublisher) Publish(ctx context.Context, msgs ...queue.Message) error {
	if p.q.closed {
		if err := p.q.stand(ctx); err != nil {
			return err
		}
		return p.Publisher.Publish(ctx, msgs...)
	}
	began := ledger.Now()
	for _, m := range msgs {
		p.q.sent.Store(m.ID, began)
	}
	err := p.Publisher.Publish(ctx, msgs...)
	_ = load.WaitUntil(ctx, p.q.later(began)) // it was published, whatever became of ctx meanwhile
	return err
}

type slowConsumer struct {
	queue.Consumer
	q slowQueue
}

// Receive implements queue.Consumer.
func (c slowConsumer) Receive(ctx context.Context, n int) ([]*queue.Delivery, error) {
	if err := c.q.stand(ctx); err != nil {
		return nil, err
	}
	return c.Consumer.Receive(ctx, n)
}

// lateConsumer hands on what it receives once it is old enough. It receives
// meanwhile: if it did not, what it adds would add to itself.
type lateConsumer struct {
	queue.Consumer
	stop  context.CancelFunc
	line  chan late // closed once there is nothing more to come
	first *late     // taken from the line and not handed on; of the one goroutine in Receive
}

type late struct {
	delivery *queue.Delivery
	until    int64 // as of ledger.Now
	err      error // instead of a delivery
}

func (c *lateConsumer) pump(ctx context.Context, q slowQueue) {
	defer close(c.line)
	for ctx.Err() == nil {
		ds, err := c.Consumer.Receive(ctx, 64)
		for _, d := range ds {
			l := late{delivery: d}
			if began, ok := q.sent.LoadAndDelete(d.ID); ok {
				l.until = q.later(began.(int64))
			}
			c.line <- l
		}
		switch {
		case errors.Is(err, queue.ErrClosed):
			return
		case err != nil && ctx.Err() == nil:
			c.line <- late{err: err}
		}
	}
}

// Receive implements queue.Consumer.
func (c *lateConsumer) Receive(ctx context.Context, n int) ([]*queue.Delivery, error) {
	if err := c.Await(ctx); err != nil {
		return nil, err
	}
	ds := []*queue.Delivery{c.first.delivery}
	c.first = nil
	for len(ds) < n {
		select {
		case l, open := <-c.line:
			if !open {
				return ds, nil
			}
			if l.err != nil || l.until > ledger.Now() {
				c.first = &l   // told by the next Receive
				return ds, nil //nolint:nilerr // likewise
			}
			ds = append(ds, l.delivery)
		default:
			return ds, nil
		}
	}
	return ds, nil
}

// Await waits for the first of the line to be old enough.
func (c *lateConsumer) Await(ctx context.Context) error {
	if c.first == nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case l, open := <-c.line:
			if !open {
				return queue.ErrClosed
			}
			c.first = &l
		}
	}
	if err := c.first.err; err != nil {
		c.first = nil
		return err
	}
	return load.WaitUntil(ctx, c.first.until)
}

// Close implements queue.Consumer. What waits in the line is given back with all
// that is unsettled.
func (c *lateConsumer) Close() error {
	c.stop()
	return c.Consumer.Close()
}
