package fault

import (
	"context"
	"time"

	"queuelab/bench/proxy"
)

// Latency makes the network as slow as one between distant places.
func Latency() Fault {
	return slowNetwork("latency", "every byte between clients and broker takes 5 to 7 ms longer, each way",
		proxy.Rule{Delay: 5 * time.Millisecond, Jitter: 2 * time.Millisecond})
}

// Bandwidth makes the network narrow.
func Bandwidth() Fault {
	return slowNetwork("bandwidth", "clients and broker share 128 KiB a second, each way", proxy.Rule{BytesPerSecond: 128 << 10})
}

func slowNetwork(name, summary string, rule proxy.Rule) Fault {
	return Fault{Name: name, Summary: summary, Trials: 3, Alone: true, Means: hasNetwork, Run: func(ctx context.Context, s Scene) error {
		return overNetwork(ctx, s, func(p *proxy.Proxy) error {
			if _, err := s.Start(ctx, behind(s, p, Role{Consumer: &Consumer{}})); err != nil {
				return err
			}
			producer, err := s.Start(ctx, behind(s, p, Role{Producer: &Producer{Count: s.Target().Messages}}))
			if err != nil {
				return err
			}
			s.Asked()
			for _, d := range []proxy.Direction{proxy.ToServer, proxy.ToClient} {
				p.Set(d, rule)
			}
			if err := producer.Produce(); err != nil {
				return err
			}
			held := func(c proxy.Counts) bool { return c.Held[proxy.ToServer] > 0 && c.Held[proxy.ToClient] > 0 }
			if err := within(ctx, 10*time.Second, p, held); err != nil {
				s.Invalid("nothing was held back: %v", err)
				return ctx.Err()
			}
			s.Confirmed()
			if err := producer.Produced(ctx); err != nil {
				return err
			}
			for _, d := range []proxy.Direction{proxy.ToServer, proxy.ToClient} {
				p.Set(d, proxy.Rule{})
			}
			s.Healed()
			s.Facts().Events = p.Counts().Held[proxy.ToServer] + p.Counts().Held[proxy.ToClient]
			return s.Finish(ctx, producer)
		})
	}}
}
