package rabbitmq

import (
	"context"
	"fmt"
	"net/url"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"queuelab/backends/internal/driver"
	"queuelab/queue"
)

// Open connects, declares the exchange and the group's queue, and returns the
// queue that u names. It fails, in one sentence, where the broker is not there,
// refuses the user or has no such virtual host, and where the queue exists with
// another type.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	c, err := parse(u)
	if err != nil {
		return nil, fmt.Errorf("rabbitmq: %w", err)
	}
	q := &rabbitQueue{config: c}
	q.admin = newLink(q.openAdmin, (*admin).alive, (*admin).close)
	a, err := q.admin.get(ctx)
	if err != nil {
		q.admin.close()
		return nil, err
	}
	q.frameMax = a.conn.Config.FrameSize
	if a.created {
		select {
		case <-time.After(c.settle):
		case <-ctx.Done():
			q.admin.close()
			return nil, ctx.Err()
		}
	}
	version, _ := a.conn.Properties["version"].(string)
	q.caps = c.capabilities(version)
	return q, nil
}

type rabbitQueue struct {
	config
	caps     queue.Capabilities
	frameMax int // bytes, as agreed with the broker
	admin    *link[*admin]
	children driver.Children
}

// Capabilities implements queue.Queue.
func (q *rabbitQueue) Capabilities() queue.Capabilities { return q.caps }

// Close implements queue.Queue.
func (q *rabbitQueue) Close() error {
	first, err := q.children.CloseAll()
	if first {
		q.admin.close()
	}
	return err
}

// Delete implements queue.Queue. It removes the exchange and the queue of this
// handle's group; AMQP does not tell the names of other groups' queues, so each
// group's handle removes its own.
func (q *rabbitQueue) Delete(ctx context.Context) error {
	return q.administer(ctx, "delete", func(ch *amqp.Channel) error {
		if _, err := ch.QueueDelete(q.queue, false, false, false); err != nil {
			return err
		}
		return ch.ExchangeDelete(q.exchange, false, false)
	})
}

// Backlog implements queue.Backlogger. The broker tells a client only what is
// ready in this handle's group; the other counts are -1.
func (q *rabbitQueue) Backlog(ctx context.Context) (queue.Backlog, error) {
	b := queue.Backlog{InFlight: -1, Dead: -1}
	err := q.administer(ctx, "backlog", func(ch *amqp.Channel) error {
		state, err := ch.QueueDeclarePassive(q.queue, true, false, false, false, nil)
		b.Ready = int64(state.Messages)
		return err
	})
	return b, err
}

var _ queue.Backlogger = (*rabbitQueue)(nil)
