package rabbitmq

import (
	"context"
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"queuelab/backends/internal/driver"
	"queuelab/queue"
)

// consumer has a connection of its own, opened again by the Receive that finds
// it dead.
type consumer struct {
	q    *rabbitQueue
	link *link[*subscription]
	once sync.Once
}

// Consumer implements queue.Queue.
func (q *rabbitQueue) Consumer(ctx context.Context) (queue.Consumer, error) {
	c := &consumer{q: q}
	c.link = newLink(q.subscribe, (*subscription).alive, (*subscription).giveBack)
	if _, err := c.link.get(ctx); err != nil {
		c.link.close()
		return nil, err
	}
	if err := q.children.Keep(c); err != nil {
		return nil, err
	}
	return c, nil
}

// Receive implements queue.Consumer.
func (c *consumer) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	if max < 1 {
		return nil, fmt.Errorf("rabbitmq: receive: max is %d, want at least 1", max)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := c.link.get(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-c.link.life.Done():
		return nil, queue.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	case d, ok := <-s.ready:
		if !ok {
			return nil, fmt.Errorf("rabbitmq: receive: %w", s.why())
		}
		return s.batch(d, max), nil
	}
}

// Ack implements queue.Consumer.
func (c *consumer) Ack(ctx context.Context, ds ...*queue.Delivery) error {
	return c.settle(ctx, ds, (*subscription).ack)
}

// Nack implements queue.Consumer.
func (c *consumer) Nack(ctx context.Context, ds ...*queue.Delivery) error {
	if c.q.autoAck {
		return fmt.Errorf("rabbitmq: nack with auto-ack=true: %w", queue.ErrUnsupported)
	}
	return c.settle(ctx, ds, (*subscription).nack)
}

// Close implements queue.Consumer.
func (c *consumer) Close() error {
	c.once.Do(func() {
		c.link.close()
		c.q.children.Remove(c)
	})
	return nil
}

// receipt is a delivery's place: its tag has no meaning on another channel.
type receipt struct {
	from *subscription
	tag  uint64
}

func (c *consumer) settle(ctx context.Context, ds []*queue.Delivery, do func(*subscription, []uint64) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return queue.Settle(ds, func(fresh []*queue.Delivery) error {
		tags := make(map[*subscription][]uint64, 1)
		for _, d := range fresh {
			r := d.Receipt().(receipt)
			tags[r.from] = append(tags[r.from], r.tag)
		}
		results := make(map[*subscription]error, len(tags))
		for s, of := range tags {
			results[s] = do(s, of)
			if results[s] != nil && c.link.life.Err() != nil {
				results[s] = fmt.Errorf("%w: %w", queue.ErrClosed, results[s])
			}
		}
		errs := make([]error, len(fresh))
		for i, d := range fresh {
			errs[i] = results[d.Receipt().(receipt).from]
		}
		return driver.Each(errs)
	})
}

// batch is d and what is there, at most max.
func (s *subscription) batch(d amqp.Delivery, max int) []*queue.Delivery {
	ds := make([]*queue.Delivery, 0, min(max, len(s.ready)+1))
	for {
		ds = append(ds, queue.NewDelivery(decode(&d), attemptOf(&d), receipt{s, d.DeliveryTag}))
		if len(ds) == max {
			return ds
		}
		select {
		case next, ok := <-s.ready:
			if !ok {
				return ds
			}
			d = next
		default:
			return ds
		}
	}
}
