package fault

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// GroupDelete destroys the consumer group under a consumer at work. What is
// delivered and what is not goes with it: a consumer must say so or begin anew,
// and never wait for ever.
func GroupDelete() Fault {
	return Fault{
		Name:    "group-delete",
		Summary: "the consumer group is destroyed (XGROUP DESTROY) under a consumer at work",
		Trials:  3,
		Means:   isStream,
		Run: func(ctx context.Context, s Scene) error {
			producer, err := consumedUnderLoad(ctx, s)
			if producer == nil {
				return err
			}
			s.Asked()
			err = onRedis(s, func(c *redis.Client, queue string) error {
				stream := "stream:{" + queue + "}"
				groups, err := c.XInfoGroups(ctx, stream).Result()
				if err != nil {
					return fmt.Errorf("ask for the groups of %s: %w", stream, err)
				}
				if len(groups) == 0 {
					s.Invalid("%s has no group to destroy", stream)
				}
				for _, g := range groups {
					if err := c.XGroupDestroy(ctx, stream, g.Name).Err(); err != nil {
						return fmt.Errorf("destroy the group %s: %w", g.Name, err)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			s.Confirmed()
			s.Healed() // by the consumer, or not at all
			return s.Finish(ctx, producer)
		},
	}
}
