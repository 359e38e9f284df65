package fault

import (
	"context"
	"time"

	"queuelab/bench/proxy"
)

// What moves at least once a second, as clients do that wait, is not idle.
const (
	idleAfter   = 1200 * time.Millisecond
	idleGap     = 1500 * time.Millisecond
	idleSamples = 6
)

// IdleClose closes connections on which nothing has moved for 1.2 s, as servers,
// firewalls and balancers do after minutes. The load is so thin that the
// producer meets a closed connection each time.
func IdleClose() Fault {
	return Fault{
		Name:    "idle-close",
		Summary: "the server closes connections that were idle for 1.2 s, between publishes 1.5 s apart",
		Trials:  3,
		Means:   hasNetwork,
		Run: func(ctx context.Context, s Scene) error {
			return overNetwork(ctx, s, func(p *proxy.Proxy) error { return idleClose(ctx, s, p) })
		},
	}
}

func idleClose(ctx context.Context, s Scene, p *proxy.Proxy) error {
	if _, err := s.Start(ctx, behind(s, p, Role{Consumer: &Consumer{}})); err != nil {
		return err
	}
	s.Asked()
	p.CloseIdle(idleAfter)
	producer, err := load(ctx, s, behind(s, p, Role{Producer: &Producer{Count: idleSamples, Rate: 1 / idleGap.Seconds()}}))
	if err != nil {
		return err
	}
	if err := within(ctx, 30*time.Second, p, func(c proxy.Counts) bool { return c.IdleCloses > 0 }); err != nil {
		s.Invalid("no connection was idle: %v", err)
		return ctx.Err()
	}
	s.Confirmed()
	if err := producer.Produced(ctx); err != nil {
		return err
	}
	p.CloseIdle(0)
	s.Healed()
	s.Facts().Events = p.Counts().IdleCloses
	s.Facts().Pops = s.Facts().Events // at most one reply each was on its way
	return s.Finish(ctx, producer)
}
