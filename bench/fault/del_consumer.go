package fault

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"queuelab/queue"
)

// DelConsumer kills a consumer with a message in hand, and then deletes its name
// from the group, as a script that tidies up would. Its pending entries go with
// the name, and nobody can claim them any more.
func DelConsumer() Fault {
	return Fault{
		Name:    "del-consumer",
		Summary: "a dead consumer's name is deleted (XGROUP DELCONSUMER) while entries are pending under it",
		Trials:  3,
		Means: func(t Target) string {
			if t.Caps.Guarantee == queue.AtMostOnce {
				return "nothing is ever pending"
			}
			return isStream(t)
		},
		Run: func(ctx context.Context, s Scene) error {
			n := s.Target().Messages
			victim, err := s.Start(ctx, Role{
				Consumer: &Consumer{Point: MidHandle, Nth: max(1, int64(float64(n)*(0.25+s.Moment()/2)))},
				Victim:   true,
			})
			if err != nil {
				return err
			}
			producer, err := load(ctx, s, Role{Producer: &Producer{Count: n}})
			if err != nil {
				return err
			}
			if !struck(ctx, s, victim) {
				return nil
			}
			if err := onRedis(s, func(c *redis.Client, queue string) error { return deleteHolders(ctx, s, c, queue) }); err != nil {
				return err
			}
			if _, err := s.Start(ctx, Role{Consumer: &Consumer{}}); err != nil {
				return err
			}
			s.Healed()
			return s.Finish(ctx, producer)
		},
	}
}

// deleteHolders deletes every consumer that has something pending.
func deleteHolders(ctx context.Context, s Scene, c *redis.Client, name string) error {
	stream := "stream:{" + name + "}"
	groups, err := c.XInfoGroups(ctx, stream).Result()
	if err != nil {
		return fmt.Errorf("ask for the groups of %s: %w", stream, err)
	}
	var gone int64
	for _, g := range groups {
		holders, err := c.XInfoConsumers(ctx, stream, g.Name).Result()
		if err != nil {
			return fmt.Errorf("ask for the consumers of %s: %w", g.Name, err)
		}
		for _, h := range holders {
			if h.Pending == 0 {
				continue
			}
			pending, err := c.XGroupDelConsumer(ctx, stream, g.Name, h.Name).Result()
			if err != nil {
				return fmt.Errorf("delete the consumer %s: %w", h.Name, err)
			}
			gone += pending
		}
	}
	if gone == 0 {
		s.Invalid("nothing was pending under a name")
	}
	s.Facts().Events += gone
	s.Note("%d pending entries went with the name of their consumer", gone)
	return nil
}
