package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"queuelab/queue"
)

// errorEvery is how often Receive reports failures, at most.
const errorEvery = 100 * time.Millisecond

// consumer is a member of the group. What it holds of the group's partitions
// changes with every generation.
type consumer struct {
	q      *topicQueue
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	dialer groupDialer
	member member
	joined chan struct{} // closed with the first generation
	denied chan error    // why there will be none
	work   sync.WaitGroup
	space  chan struct{} // signalled when any buffer wants more; nil: each partition has its own
	wake   chan struct{} // for Receive: look again
	shut   sync.Once
	taken  []*queue.Delivery // with commit=before: by a Receive that did not return them; only for Receive

	mu       sync.Mutex // guards everything below, and the generations
	closed   bool
	current  *generation       // the last one that began; nil before the first
	dealt    *answer           // comes when the next one begins
	failure  error             // what Receive is to report
	told     time.Time         // when it last did
	returned []*queue.Delivery // with commit=poll: since the last Receive began
	turn     int               // the partition that is first in the next Receive
}

// newConsumer begins to join the group.
func newConsumer(q *topicQueue) (*consumer, error) {
	c := &consumer{
		q:      q,
		joined: make(chan struct{}),
		denied: make(chan error, 1),
		wake:   make(chan struct{}, 1),
		dealt:  newAnswer(),
		told:   time.Now().Add(-errorEvery),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.dialer.dial = q.cluster.dial
	member, err := q.client.join(c)
	if err != nil {
		c.cancel()
		return nil, fmt.Errorf("kafka: consumer: %w", err)
	}
	c.member = member
	if q.periodic() {
		c.work.Go(c.tick)
	}
	return c, nil
}

// join waits for the first generation.
func (c *consumer) join(ctx context.Context) error {
	// Members that died hold a join up for a session.
	limit := time.NewTimer(2*c.q.session + 2*c.q.timeout)
	defer limit.Stop()
	select {
	case <-c.joined:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ctx.Done():
		return queue.ErrClosed
	case err := <-c.denied:
		if errors.Is(err, kafkago.InvalidSessionTimeout) {
			return fmt.Errorf("kafka: the broker does not allow session=%v, see its group.min.session.timeout.ms: %w", c.q.session, err)
		}
		return fmt.Errorf("kafka: join group %s: %w", c.q.group, err)
	case <-limit.C:
		c.mu.Lock()
		defer c.mu.Unlock()
		return fmt.Errorf("kafka: group %s did not let the consumer in: %w", c.q.group, cmp.Or(c.failure, context.DeadlineExceeded))
	}
}

// refused notes that joining failed. While there was no generation yet, an
// error that another attempt would not cure ends the wait for one.
func (c *consumer) refused(err error) {
	c.fail(fmt.Errorf("kafka: join group %s: %w", c.q.group, err))
	if !hopeless(err) {
		return
	}
	select {
	case c.denied <- err:
	default:
	}
}

// hopeless reports whether joining again would not help.
func hopeless(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	for _, e := range []kafkago.Error{
		kafkago.GroupAuthorizationFailed, kafkago.TopicAuthorizationFailed, kafkago.InvalidSessionTimeout,
		kafkago.InconsistentGroupProtocol, kafkago.InvalidGroupId, kafkago.GroupMaxSizeReached, kafkago.UnsupportedVersion,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (c *consumer) fail(err error) {
	c.mu.Lock()
	c.failure = err
	c.mu.Unlock()
	signal(c.wake)
}

// signal wakes the one that waits at ch, or the next that comes to wait.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Receive implements queue.Consumer.
func (c *consumer) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	if max < 1 {
		return nil, fmt.Errorf("kafka: receive at most %d: want at least 1", max)
	}
	switch c.q.commit {
	case commitBefore:
		return c.receiveBefore(ctx, max)
	case commitPoll:
		c.polled()
	}
	return c.await(ctx, max)
}

// await waits for deliveries, or a failure.
func (c *consumer) await(ctx context.Context, max int) ([]*queue.Delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ds, later, err := c.look(max)
		if ds != nil || err != nil {
			return ds, err
		}
		var again <-chan time.Time
		if later > 0 {
			again = time.After(later)
		}
		select {
		case <-ctx.Done():
		case <-c.ctx.Done():
		case <-c.wake:
		case <-again:
		}
	}
}

// look takes what is there. If that is nothing and there is a failure to
// report, but too soon, it says when to look again.
func (c *consumer) look(max int) (ds []*queue.Delivery, later time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, 0, queue.ErrClosed
	}
	if g := c.current; g != nil {
		if ds = g.take(max, c.turn); ds != nil {
			c.turn++
			c.handedOut(ds)
			return ds, 0, nil
		}
	}
	if c.failure == nil {
		return nil, 0, nil
	}
	if later = errorEvery - time.Since(c.told); later > 0 {
		return nil, later, nil
	}
	err, c.failure, c.told = c.failure, nil, time.Now()
	return nil, 0, err
}

// Ack implements queue.Consumer. What nil means for a delivery beyond an
// unsettled one is in the package doc.
func (c *consumer) Ack(ctx context.Context, ds ...*queue.Delivery) error {
	if c.q.commit != commitAfter {
		return queue.Settle(ds, c.handled)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return queue.Settle(ds, func(fresh []*queue.Delivery) error { return c.settle(ctx, fresh) })
}

func (c *consumer) settle(ctx context.Context, ds []*queue.Delivery) error {
	limit := time.NewTimer(c.q.timeout)
	defer limit.Stop()
	errs := make([]error, len(ds))
	for {
		pending, answer, err := c.mark(ds, errs)
		if err != nil {
			return err
		}
		if answer == nil {
			break
		}
		select {
		case <-answer.done:
			err = answer.err
		case <-ctx.Done():
			err = ctx.Err()
		case <-c.ctx.Done():
			err = queue.ErrClosed
		case <-limit.C:
			err = fmt.Errorf("kafka: ack: no answer from the coordinator of group %s within %v", c.q.group, c.q.timeout)
		}
		if err != nil {
			for _, i := range pending {
				errs[i] = err
			}
			break
		}
	}
	for _, err := range errs {
		if err != nil {
			return &queue.SettleError{Errs: errs}
		}
	}
	return nil
}

// mark notes deliveries as done, and which of them are lost. If some are still
// to be committed it returns those and the answer to wait for: that of the
// commit which takes them along, or, while the group deals out its partitions,
// the deal.
func (c *consumer) mark(ds []*queue.Delivery, errs []error) (pending []int, next *answer, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, queue.ErrClosed
	}
	for i, d := range ds {
		r, ok := d.Receipt().(*receipt)
		switch {
		case !ok || r.part.c != c:
			errs[i] = errors.New("kafka: ack: not a delivery of this consumer")
		case r.part.lost:
			errs[i] = queue.ErrLeaseLost
		case r.part.done(r.offset):
			if pending == nil {
				pending = make([]int, 0, len(ds))
			}
			pending = append(pending, i)
		}
	}
	if c.current != nil {
		signal(c.current.moved)
	}
	switch {
	case len(pending) == 0:
		return nil, nil, nil
	case c.current.over:
		return pending, c.dealt, nil
	default:
		return pending, c.current.nextCommit(), nil
	}
}

// Nack implements queue.Consumer: Kafka cannot give one message back.
func (c *consumer) Nack(ctx context.Context, ds ...*queue.Delivery) error {
	return queue.ErrUnsupported
}

// Close implements queue.Consumer. What is finished has been committed by its
// Ack; Close leaves the group, so that others get the rest at once. A broker
// that does not answer is left to find out by itself.
func (c *consumer) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.shut.Do(func() {
		if c.q.periodic() {
			c.commitReturned()
		}
		c.cancel()
		c.member.leave()
		c.work.Wait()
		c.q.forget(c)
	})
	return nil
}
