package redisconn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/driver"
	"queuelab/backends/internal/envelope"
	"queuelab/queue"
)

// Popped is a value that was taken off a list, and is on none any more.
type Popped struct{ Key, Value string }

// Popper is the consumer of every queue whose pop removes what it delivers; they
// differ in how they pop. It implements queue.Consumer, at most once.
type Popper struct {
	base    *Base
	client  *redis.Client
	session *Session
	puller  *driver.Puller[Popped]
	closing chan struct{}
	once    sync.Once
	err     error
}

// NewPopper opens a consumer of the queue. pop takes at most so many values off
// their lists; it returns after about Block at the latest, and may return none.
func NewPopper(ctx context.Context, b *Base, pop func(p *Popper, most int) ([]Popped, error)) (queue.Consumer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := &Popper{base: b, client: b.Client(2), closing: make(chan struct{})} // lifts the session's block, and pushes back
	p.session = NewSession(b.Server, p.client)
	p.puller = driver.NewPuller(func(most int) ([]Popped, error) {
		got, err := pop(p, most)
		if err != nil {
			err = b.Wrap("receive", err)
		}
		return got, err
	}, p.session.Unblock)
	if err := b.Children.Keep(p); err != nil {
		return nil, err
	}
	return p, nil
}

// Do sends a command on the popper's one connection, which may block for Block.
func (p *Popper) Do(args ...any) (Reply, error) { return p.session.Do(args...) }

// Pause waits, and less when the popper is closed.
func (p *Popper) Pause(d time.Duration) { driver.Sleep(p.closing, d) }

// Receive implements queue.Consumer. A value that is not a message is an error
// of the call after those that are; it is off the list then.
func (p *Popper) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	got, err := p.puller.Receive(ctx, max)
	if err != nil {
		return nil, err
	}
	values := make([]string, len(got))
	for i := range got {
		values[i] = got[i].Value
	}
	return Deliver(p.puller, values, func(n int, err error) error {
		return p.base.Wrap("receive", fmt.Errorf("dropped %d values of the queue %s: %w", n, p.base.Name, err))
	})
}

// Deliver makes deliveries of values that were pulled, and are nowhere else. Those
// that are no messages are an error: of the next Receive, or of this one when there
// is nothing else.
func Deliver[T any](p *driver.Puller[T], values []string, dropped func(n int, err error) error) ([]*queue.Delivery, error) {
	ds, foreign, err := envelope.Deliveries(values)
	if foreign == 0 {
		return ds, nil
	}
	if err = dropped(foreign, err); len(ds) == 0 {
		return nil, err
	}
	p.Fail(err)
	return ds, nil
}

// Ack implements queue.Consumer. The message left its list when it was popped,
// so this settles it in this process, and never fails.
func (p *Popper) Ack(_ context.Context, ds ...*queue.Delivery) error {
	return queue.Settle(ds, func([]*queue.Delivery) error { return nil })
}

// Nack implements queue.Consumer.
func (p *Popper) Nack(context.Context, ...*queue.Delivery) error { return queue.ErrUnsupported }

// Close implements queue.Consumer. What was popped for a Receive that had gone
// is pushed back to the end that it came from.
func (p *Popper) Close() error {
	p.once.Do(func() {
		close(p.closing)
		var err error
		if rest := p.puller.Close(); len(rest) > 0 {
			err = p.pushBack(rest)
		}
		p.err = errors.Join(err, p.session.Close(), p.client.Close())
		p.base.Children.Remove(p)
	})
	return p.err
}

func (p *Popper) pushBack(rest []Popped) error {
	slices.Reverse(rest) // the first popped must be the next popped
	byKey := map[string][]any{}
	for _, v := range rest {
		byKey[v.Key] = append(byKey[v.Key], v.Value)
	}
	ctx, cancel := p.base.Within()
	defer cancel()
	pipe := p.client.Pipeline()
	for key, values := range byKey {
		pipe.RPush(ctx, key, values...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return p.base.Wrap("close", fmt.Errorf("push %d unreceived messages back: %w", len(rest), err))
	}
	return nil
}

// PoppedBy reads the answer to BRPOP or, with many, to BLMPOP: the key with a
// value, or with an array of them; none when nothing came in time.
func PoppedBy(r Reply, many bool) ([]Popped, error) {
	n, err := r.Array()
	if n < 0 || err != nil {
		return nil, err
	}
	key, err := r.Text()
	n = 1
	if many && err == nil {
		n, err = r.Array()
	}
	if err != nil {
		return nil, err
	}
	values := make([]Popped, n)
	for i := range values {
		values[i].Key = key
		if values[i].Value, err = r.Text(); err != nil {
			return nil, err
		}
	}
	return values, nil
}
