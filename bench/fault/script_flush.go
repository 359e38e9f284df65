package fault

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// ScriptFlush makes Redis forget its scripts, again and again while they are in
// use: whoever runs one by its hash alone gets NOSCRIPT.
func ScriptFlush() Fault {
	const times = 10
	return Fault{
		Name:    "script-flush",
		Summary: "Redis forgets its scripts (SCRIPT FLUSH), ten times under load",
		Trials:  3,
		// A Redis that was given has other users.
		OwnBroker: true,
		Means:     isRedisStore,
		Run: func(ctx context.Context, s Scene) error {
			producer, err := consumedUnderLoad(ctx, s)
			if producer == nil {
				return err
			}
			s.Asked()
			err = onRedis(s, func(c *redis.Client, _ string) error {
				n := int64(s.Target().Messages)
				from := int64(float64(n) * (0.25 + s.Moment()/2))
				for i := range int64(times) {
					if err := s.Delivered(ctx, from+(n-from)*i/times); err != nil {
						return err
					}
					if err := c.ScriptFlush(ctx).Err(); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			s.Confirmed()
			s.Healed()
			return s.Finish(ctx, producer)
		},
	}
}
