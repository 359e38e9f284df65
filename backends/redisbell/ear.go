package redisbell

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/driver"
	"queuelab/backends/internal/redisconn"
)

// ear hears the bell over a connection of its own, while it is subscribed.
type ear struct {
	sub     *redis.PubSub
	channel string
	silence time.Duration // after which the server is asked whether it lives
	rung    chan struct{}
	broken  chan error
	stop    context.CancelFunc
	loop    sync.WaitGroup
}

func newEar(q *bell, client *redis.Client) *ear {
	e := &ear{
		sub: client.Subscribe(context.Background()), channel: q.channel, silence: q.Timeout,
		rung: make(chan struct{}, 1), broken: make(chan error, 1),
	}
	var ctx context.Context
	ctx, e.stop = context.WithCancel(context.Background())
	e.loop.Go(func() { e.listen(ctx) })
	return e
}

// begin subscribes. What rang before is forgotten.
func (e *ear) begin() error {
	select {
	case <-e.rung:
	default:
	}
	select {
	case <-e.broken: //nolint:errcheck // what broke it is told where it broke
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.silence)
	defer cancel()
	return e.sub.Subscribe(ctx, e.channel)
}

// end unsubscribes, without waiting for the answer.
func (e *ear) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), e.silence)
	defer cancel()
	return e.sub.Unsubscribe(ctx, e.channel)
}

// listen reads until the ear is closed. go-redis connects anew by itself, and
// subscribes again to what it was subscribed to.
func (e *ear) listen(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		v, err := redisconn.Hear(ctx, e.sub, e.silence)
		if err == nil {
			failures = 0
			if _, ok := v.(*redis.Message); ok {
				driver.Signal(e.rung)
			}
			continue
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case e.broken <- err:
		default:
		}
		failures++
		if !driver.Sleep(ctx.Done(), driver.Backoff(failures)) {
			return
		}
	}
}

func (e *ear) close() {
	e.stop()
	_ = e.sub.Close() // it may be broken already; this ends the read on it
	e.loop.Wait()
}
