package queuetest_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"queuelab/backends/memory"
	"queuelab/queue"
	"queuelab/queue/queuetest"
)

// tampered is the memory queue with one thing broken. A nil field is honest.
type tampered struct {
	queue.Queue
	caps     func(*queue.Capabilities)
	publish  func(p queue.Publisher, ctx context.Context, ms []queue.Message) error
	receive  func(c *tamperedConsumer, ctx context.Context, max int) ([]*queue.Delivery, error)
	ack      func(c *tamperedConsumer, ctx context.Context, ds []*queue.Delivery) error
	nack     func(c *tamperedConsumer, ctx context.Context, ds []*queue.Delivery) error
	close    func(c *tamperedConsumer) error
	delete   func(ctx context.Context) error
	backlog  func(queue.Backlog) queue.Backlog
	settings string
}

func (q *tampered) Capabilities() queue.Capabilities {
	caps := q.Queue.Capabilities()
	if q.caps != nil {
		q.caps(&caps)
	}
	return caps
}

func (q *tampered) Publisher(ctx context.Context) (queue.Publisher, error) {
	p, err := q.Queue.Publisher(ctx)
	if err != nil || q.publish == nil {
		return p, err
	}
	return &tamperedPublisher{p, q}, nil
}

func (q *tampered) Consumer(ctx context.Context) (queue.Consumer, error) {
	c, err := q.Queue.Consumer(ctx)
	if err != nil {
		return nil, err
	}
	return &tamperedConsumer{Consumer: c, q: q}, nil
}

func (q *tampered) Delete(ctx context.Context) error {
	if q.delete != nil {
		return q.delete(ctx)
	}
	return q.Queue.Delete(ctx)
}

func (q *tampered) Backlog(ctx context.Context) (queue.Backlog, error) {
	b, err := q.Queue.(queue.Backlogger).Backlog(ctx)
	if q.backlog != nil {
		b = q.backlog(b)
	}
	return b, err
}

type tamperedPublisher struct {
	queue.Publisher
	q *tampered
}

func (p *tamperedPublisher) Publish(ctx context.Context, ms ...queue.Message) error {
	return p.q.publish(p.Publisher, ctx, ms)
}

type tamperedConsumer struct {
	queue.Consumer
	q      *tampered
	closed atomic.Bool

	mu   sync.Mutex
	held []*queue.Delivery // in order
}

func (c *tamperedConsumer) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	if c.q.receive != nil {
		return c.q.receive(c, ctx, max)
	}
	ds, err := c.Consumer.Receive(ctx, max)
	c.hold(ds)
	return ds, err
}

func (c *tamperedConsumer) hold(ds []*queue.Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = append(c.held, ds...)
}

func (c *tamperedConsumer) Ack(ctx context.Context, ds ...*queue.Delivery) error {
	if c.q.ack != nil {
		return c.q.ack(c, ctx, ds)
	}
	return c.Consumer.Ack(ctx, ds...)
}

func (c *tamperedConsumer) Nack(ctx context.Context, ds ...*queue.Delivery) error {
	if c.q.nack != nil {
		return c.q.nack(c, ctx, ds)
	}
	return c.Consumer.Nack(ctx, ds...)
}

func (c *tamperedConsumer) Close() error {
	c.closed.Store(true)
	if c.q.close != nil {
		return c.q.close(c)
	}
	return c.Consumer.Close()
}

// tamper makes a harness over a new memory queue per Open.
func tamper(make func() *tampered) queuetest.Harness {
	open := func(name string, params []string) (queue.Queue, error) {
		q := make()
		if q.settings != "" {
			params = append(params, q.settings)
		}
		m, err := memory.Open(context.Background(), &url.URL{Scheme: "memory", Host: name, RawQuery: strings.Join(params, "&")})
		if err != nil {
			return nil, err
		}
		q.Queue = m
		return q, nil
	}
	return queuetest.Harness{
		Open: func(t testing.TB, name string, params ...string) queue.Queue {
			q, err := open(name, params)
			if err != nil {
				t.Fatal(err)
			}
			return q
		},
		OpenErr: func(params ...string) error {
			q, err := open("orders", params)
			if err != nil {
				return err
			}
			return q.Close()
		},
		Redelivery: 50 * time.Millisecond,
		Arrival:    time.Second,
	}
}

// everyThousandth counts messages and reports one in a thousand.
func everyThousandth() func() bool {
	var n atomic.Int64
	return func() bool { return n.Add(1)%1000 == 0 }
}

// change publishes what f makes of each message.
func change(f func(*queue.Message)) *tampered {
	return &tampered{publish: func(p queue.Publisher, ctx context.Context, ms []queue.Message) error {
		ms = slices.Clone(ms)
		for i := range ms {
			f(&ms[i])
		}
		return p.Publish(ctx, ms...)
	}}
}

// redo replaces each delivery, as a backend that looks at what it hands over.
func redo(f func(d *queue.Delivery) *queue.Delivery) *tampered {
	var inner sync.Map
	settle := func(do func(queue.Consumer) func(context.Context, ...*queue.Delivery) error) func(*tamperedConsumer, context.Context, []*queue.Delivery) error {
		return func(c *tamperedConsumer, ctx context.Context, ds []*queue.Delivery) error {
			in := make([]*queue.Delivery, len(ds))
			for i, d := range ds {
				x, _ := inner.Load(d)
				in[i] = x.(*queue.Delivery)
			}
			return do(c.Consumer)(ctx, in...)
		}
	}
	return &tampered{
		receive: func(c *tamperedConsumer, ctx context.Context, max int) ([]*queue.Delivery, error) {
			ds, err := c.Consumer.Receive(ctx, max)
			out := make([]*queue.Delivery, len(ds))
			for i, d := range ds {
				out[i] = f(d)
				inner.Store(out[i], d)
			}
			return out, err
		},
		ack:  settle(func(c queue.Consumer) func(context.Context, ...*queue.Delivery) error { return c.Ack }),
		nack: settle(func(c queue.Consumer) func(context.Context, ...*queue.Delivery) error { return c.Nack }),
	}
}

// swallow makes a cancelled Receive go on in the background and drop what it gets.
func swallow(c *tamperedConsumer, ctx context.Context, max int) ([]*queue.Delivery, error) {
	ds, err := c.Consumer.Receive(ctx, max)
	if err != nil && ctx.Err() != nil {
		go func() {
			if ds, err := c.Consumer.Receive(context.Background(), 1); err == nil {
				c.Consumer.Ack(context.Background(), ds...)
			}
		}()
	}
	return ds, err
}

var errLost = errors.New("connection reset")
