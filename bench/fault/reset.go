package fault

import (
	"context"

	"queuelab/bench/proxy"
)

// Reset resets the connections of all clients at once, under load. Nobody
// publishes again what ended unknown.
func Reset() Fault {
	return Fault{
		Name:    "reset",
		Summary: "every connection of every client is reset under load",
		Means:   hasNetwork,
		Run: func(ctx context.Context, s Scene) error {
			return overNetwork(ctx, s, func(p *proxy.Proxy) error { return reset(ctx, s, p) })
		},
	}
}

func reset(ctx context.Context, s Scene, p *proxy.Proxy) error {
	if _, err := s.Start(ctx, behind(s, p, Role{Consumer: &Consumer{}})); err != nil {
		return err
	}
	producer, err := load(ctx, s, behind(s, p, Role{Producer: &Producer{Count: s.Target().Messages}}))
	if err != nil {
		return err
	}
	if err := s.Delivered(ctx, 1); err != nil {
		s.Invalid("%v", err)
		return ctx.Err()
	}
	if err := whilePublishing(ctx, s); err != nil {
		return err
	}
	s.Asked()
	n := p.Reset()
	if n == 0 {
		s.Invalid("no connection went through the proxy")
		return nil
	}
	s.Confirmed()
	s.Facts().Events = int64(n)
	s.Facts().Pops = 1 // the one consumer's, if its reply was on its way
	s.Healed()
	return s.Finish(ctx, producer)
}
