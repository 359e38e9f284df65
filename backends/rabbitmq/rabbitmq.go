package rabbitmq

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

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
	q := &rabbitQueue{config: c, open: make(map[closer]struct{})}
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

type closer interface{ Close() error }

type rabbitQueue struct {
	config
	caps     queue.Capabilities
	frameMax int // bytes, as agreed with the broker
	admin    *link[*admin]

	mu     sync.Mutex
	open   map[closer]struct{} // publishers and consumers
	closed bool
}

func (q *rabbitQueue) Capabilities() queue.Capabilities { return q.caps }

// keep remembers c for Close, unless the queue was closed meanwhile.
func (q *rabbitQueue) keep(c closer) error {
	q.mu.Lock()
	if !q.closed {
		q.open[c] = struct{}{}
		q.mu.Unlock()
		return nil
	}
	q.mu.Unlock()
	c.Close()
	return queue.ErrClosed
}

func (q *rabbitQueue) forget(c closer) {
	q.mu.Lock()
	delete(q.open, c)
	q.mu.Unlock()
}

// Close implements queue.Queue.
func (q *rabbitQueue) Close() error {
	q.mu.Lock()
	q.closed = true
	open := make([]closer, 0, len(q.open))
	for c := range q.open {
		open = append(open, c)
	}
	q.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range open {
		wg.Go(func() { c.Close() })
	}
	wg.Wait()
	q.admin.close()
	return nil
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
