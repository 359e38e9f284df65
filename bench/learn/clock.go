package learn

import (
	"context"
	"fmt"
	"time"
)

// clock ends a context after so long, in which the starts of brokers do not count.
type clock struct {
	timer *time.Timer
	left  time.Duration
	since time.Time // it runs
}

func newClock(ctx context.Context, d time.Duration) (context.Context, *clock, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &clock{left: d, since: time.Now()}
	c.timer = time.AfterFunc(d, func() { cancel(fmt.Errorf("the lesson was not over within %v", d)) })
	return ctx, c, func() { c.timer.Stop(); cancel(context.Canceled) }
}

func (c *clock) pause() {
	c.timer.Stop()
	c.left -= time.Since(c.since)
}

func (c *clock) resume() {
	c.since = time.Now()
	c.timer.Reset(max(0, c.left))
}

// StartAgain lets a broker of the lesson's own start again, which is not on the
// lesson's time: start is Broker.Restart, or a RestartFrom.
func (s *Stand) StartAgain(start func(context.Context) error) {
	s.clock.pause()
	defer s.clock.resume()
	s.Must(start(s.ctx))
}
