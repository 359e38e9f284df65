package trial

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

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

// slowQueue takes a share longer for every Publish and Receive, on purpose, so
// that a comparison can be seen to find it.
type slowQueue struct {
	queue.Queue
	share float64
}

// Publisher implements queue.Queue.
func (q slowQueue) Publisher(ctx context.Context) (queue.Publisher, error) {
	p, err := q.Queue.Publisher(ctx)
	return slowPublisher{p, q.share}, err
}

// Consumer implements queue.Queue.
func (q slowQueue) Consumer(ctx context.Context) (queue.Consumer, error) {
	c, err := q.Queue.Consumer(ctx)
	return &slowConsumer{Consumer: c, share: q.share, since: time.Now()}, err
}

type slowPublisher struct {
	queue.Publisher
	share float64
}

// Publish implements queue.Publisher.
func (p slowPublisher) Publish(ctx context.Context, msgs ...queue.Message) error {
	began := time.Now()
	err := p.Publisher.Publish(ctx, msgs...)
	linger(time.Duration(p.share * float64(time.Since(began))))
	return err
}

type slowConsumer struct {
	queue.Consumer
	share float64
	since time.Time // the last Receive returned; owned by the one goroutine in Receive
}

// Receive implements queue.Consumer. The time since the last one counts as work,
// and of the time that it blocks no more than a millisecond does: an idle
// consumer is not a slow one.
func (c *slowConsumer) Receive(ctx context.Context, n int) ([]*queue.Delivery, error) {
	began := time.Now()
	work := began.Sub(c.since)
	ds, err := c.Consumer.Receive(ctx, n)
	work += min(time.Since(began), time.Millisecond)
	linger(time.Duration(c.share * float64(work)))
	c.since = time.Now()
	return ds, err
}

// linger spins, since what it has to wait is mostly shorter than a sleep can be.
func linger(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
		runtime.Gosched()
	}
}
