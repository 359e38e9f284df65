package rabbitmq

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"queuelab/backends/internal/driver"
	"queuelab/queue"
)

// publisher has one connection and a few lanes on it. Publish hands each
// message to the lane of its key and waits for the outcomes.
type publisher struct {
	q     *rabbitQueue
	link  *link[*pool]
	lanes []*lane
	seed  maphash.Seed
	stop  chan struct{} // closed once no call is left, or closeTimeout has passed
	wg    sync.WaitGroup

	life    *driver.Life  // of its calls
	stopped chan struct{} // closed when Close is through
}

// Publisher implements queue.Queue.
func (q *rabbitQueue) Publisher(ctx context.Context) (queue.Publisher, error) {
	p := &publisher{q: q, seed: maphash.MakeSeed(), life: driver.NewLife(), stop: make(chan struct{}), stopped: make(chan struct{})}
	p.link = newLink(q.openPool, (*pool).alive, (*pool).close)
	if _, err := p.link.get(ctx); err != nil {
		p.link.close()
		return nil, err
	}
	for i := range q.channels {
		l := &lane{p: p, number: i, in: make(chan item, q.window)}
		p.lanes = append(p.lanes, l)
		p.wg.Go(l.run)
	}
	if err := q.children.Keep(p); err != nil {
		return nil, err
	}
	return p, nil
}

// Publish implements queue.Publisher.
func (p *publisher) Publish(ctx context.Context, msgs ...queue.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.life.Begin(); err != nil {
		return err
	}
	defer p.life.Done()
	if len(msgs) == 0 {
		return nil
	}

	c := newCall(len(msgs))
	timer := time.NewTimer(p.q.confirmTimeout)
	defer timer.Stop()
	for i, m := range msgs {
		out, err := p.q.encode(m)
		if err != nil {
			c.finish(i, queue.Rejected, fmt.Errorf("rabbitmq: publish: %w", queue.Reject(err)))
			continue
		}
		select {
		case p.lanes[p.laneOf(m.Key)].in <- item{call: c, index: i, publishing: out, route: p.q.routeOf(m)}:
		case <-ctx.Done():
			return c.leave(ctx.Err())
		case <-timer.C:
			return c.leave(p.timeout())
		case <-p.stop:
			return c.leave(queue.ErrClosed)
		}
	}
	select {
	case <-c.done:
		return c.result()
	case <-ctx.Done():
		return c.leave(ctx.Err())
	case <-timer.C:
		return c.leave(p.timeout())
	case <-p.stop:
		return c.leave(queue.ErrClosed)
	}
}

func (p *publisher) timeout() error {
	return fmt.Errorf("rabbitmq: publish: no confirm within %v", p.q.confirmTimeout)
}

// laneOf keeps the messages of one key on one channel: the broker keeps the
// order of a channel only.
func (p *publisher) laneOf(key string) int {
	if len(p.lanes) == 1 {
		return 0
	}
	return int(maphash.String(p.seed, key) % uint64(len(p.lanes)))
}

// Close implements queue.Publisher. It waits for at most closeTimeout; what is
// still unconfirmed then is unknown.
func (p *publisher) Close() error {
	if !p.life.End() {
		<-p.stopped
		return nil
	}
	idle := make(chan struct{})
	go func() { p.life.Wait(); close(idle) }()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
	close(p.stop)
	p.link.close() // also frees a lane that is stuck in a write
	p.wg.Wait()
	<-idle
	p.q.children.Remove(p)
	close(p.stopped)
	return nil
}
