package fault

import (
	"context"
	"sync/atomic"

	"queuelab/bench/proxy"
)

// BlackHoleConsumer lets a consumer's connection fall silent while it waits for
// a message: no byte comes through, and no end of it is told to the broker, to
// which the consumer still waits. A second consumer takes over. What the broker
// gives to the ghost is lost if giving is all that a broker does.
func BlackHoleConsumer() Fault {
	return Fault{
		Name:    "black-hole-consumer",
		Summary: "a waiting consumer's connection goes silent: the broker hands messages to a ghost until the connection ends",
		Trials:  3,
		Means:   hasNetwork,
		Run: func(ctx context.Context, s Scene) error {
			return overNetwork(ctx, s, func(p *proxy.Proxy) error { return blackHole(ctx, s, p) })
		},
	}
}

func blackHole(ctx context.Context, s Scene, p *proxy.Proxy) error {
	n := s.Target().Messages
	if _, err := s.Start(ctx, behind(s, p, Role{Consumer: &Consumer{}})); err != nil {
		return err
	}
	first, err := load(ctx, s, Role{Producer: &Producer{Count: n / 4}})
	if err != nil {
		return err
	}
	rest, err := s.Start(ctx, Role{Producer: &Producer{Count: n - n/4}})
	if err != nil {
		return err
	}
	if err := first.Produced(ctx); err != nil {
		return err
	}
	if err := s.Delivered(ctx, int64(n/4)); err != nil {
		s.Invalid("the consumer did not get what came before the fault: %v", err)
		return ctx.Err()
	}

	s.Asked()
	var given atomic.Int64
	p.Set(toGhost, proxy.Rule{Drop: true, Dropped: func(b []byte) {
		if handsOver(b) {
			given.Add(1)
		}
	}})
	p.Set(proxy.ToServer, proxy.Rule{Drop: true})
	s.Confirmed()
	if err := rest.Produce(); err != nil {
		return err
	}
	if err := rest.Produced(ctx); err != nil {
		return err
	}
	// Where each subscriber gets everything another one would hide what the
	// ghost misses.
	if !s.Target().Caps.Broadcast {
		if _, err := s.Start(ctx, Role{Consumer: &Consumer{}}); err != nil {
			return err
		}
		// Most, since some are in the ghost's hand.
		if err := s.Delivered(ctx, int64(n*3/4)); err != nil {
			s.Invalid("no second consumer took over: %v", err)
			return ctx.Err()
		}
	}
	p.Set(proxy.ToServer, proxy.Rule{})
	p.Set(toGhost, proxy.Rule{}) // and the ghost's connections are reset
	s.Healed()
	s.Facts().Events = given.Load()
	s.Note("the broker sent %d bytes to the ghost, in %d pieces that could hold messages", p.Counts().Dropped[toGhost], given.Load())
	return s.Finish(ctx, first, rest)
}

// toGhost is the direction in which a black hole loses messages.
const toGhost = proxy.ToClient

// handsOver tells replies that carry messages from a broker's "nothing yet", its
// acknowledgements and its heartbeats, all of which are shorter than a
// message's envelope.
func handsOver(b []byte) bool { return len(b) >= 64 && !proxy.RedisNothing(b) }
