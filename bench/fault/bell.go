package fault

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/bench/proxy"
)

// bellDelay is how long a byte takes between the consumer and Redis. Four of them
// pass from a message's bell to the look that finds the list empty, and six to the
// subscription after that: a message five later rings for nobody.
const bellDelay = 100 * time.Millisecond

// Bell has a bell ring between a consumer's last look and its wait, so that
// nobody hears it: the network to the consumer is slow, and of two messages the
// second comes as it has looked and is about to subscribe.
func Bell() Fault {
	return Fault{
		Name:    "bell",
		Summary: "a bell rings after the consumer has looked and before it waits: nobody hears it",
		Trials:  3,
		Alone:   true,
		Means: func(t Target) string {
			if t.Scheme != "redis+bell" {
				return "nobody waits for a bell"
			}
			return ""
		},
		Run: func(ctx context.Context, s Scene) error {
			return overNetwork(ctx, s, func(p *proxy.Proxy) error {
				if _, err := s.Start(ctx, behind(s, p, Role{Consumer: &Consumer{}})); err != nil {
					return err
				}
				if err := onRedis(s, func(c *redis.Client, queue string) error { return subscribed(ctx, c, queue) }); err != nil {
					return err
				}
				s.Asked()
				for _, d := range []proxy.Direction{proxy.ToServer, proxy.ToClient} {
					p.Set(d, proxy.Rule{Delay: bellDelay})
				}
				producer, err := load(ctx, s, Role{Producer: &Producer{Count: 2, Rate: 1 / (5 * bellDelay).Seconds()}})
				if err != nil {
					return err
				}
				if err := producer.Produced(ctx); err != nil {
					return err
				}
				s.Confirmed()
				if err := pass(ctx, 5*bellDelay); err != nil { // until the consumer waits again
					return err
				}
				for _, d := range []proxy.Direction{proxy.ToServer, proxy.ToClient} {
					p.Set(d, proxy.Rule{})
				}
				s.Healed()
				s.Facts().Events++
				return s.Finish(ctx, producer)
			})
		},
	}
}

// subscribed waits until somebody listens for the queue's bell.
func subscribed(ctx context.Context, c *redis.Client, queue string) error {
	for deadline := time.Now().Add(10 * time.Second); ; {
		channels, err := c.PubSubChannels(ctx, "*{"+queue+"}*").Result()
		if err != nil {
			return err
		}
		if len(channels) > 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("the consumer does not wait for its bell within 10s")
		}
		if err := pass(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}
