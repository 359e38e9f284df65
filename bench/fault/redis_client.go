package fault

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
)

// onRedis lends a connection of its own to the trial's Redis, and the name of the
// queue, which all keys of a queue bear in braces.
func onRedis(s Scene, do func(c *redis.Client, queue string) error) error {
	o, err := redis.ParseURL(s.Broker().URL())
	if err != nil {
		return fmt.Errorf("the broker's URL: %w", err)
	}
	o.MaxRetries, o.ContextTimeoutEnabled = -1, true
	c := redis.NewClient(o)
	defer c.Close()
	p, err := parameters(s)
	if err != nil {
		return err
	}
	return do(c, p.Get("queue"))
}

// parameters are those of the trial's queue.
func parameters(s Scene) (url.Values, error) {
	u, err := url.Parse(s.QueueURL(""))
	if err != nil {
		return nil, fmt.Errorf("the queue's URL: %w", err)
	}
	return u.Query(), nil
}

// keysOf finds all keys of a queue.
func keysOf(ctx context.Context, c *redis.Client, queue string) ([]string, error) {
	var keys []string
	each := c.Scan(ctx, 0, "*{"+queue+"}*", 1000).Iterator()
	for each.Next(ctx) {
		keys = append(keys, each.Val())
	}
	if err := each.Err(); err != nil {
		return nil, fmt.Errorf("look for the queue's keys: %w", err)
	}
	return keys, nil
}

// isRedis is for faults that are commands of Redis.
func isRedis(t Target) string {
	if t.Broker != "redis" {
		return "the queue is not on Redis"
	}
	return ""
}

// isRedisStore also asks for something that is kept.
func isRedisStore(t Target) string {
	if why := isRedis(t); why != "" {
		return why
	}
	if !t.Caps.Stored {
		return "nothing is stored"
	}
	return ""
}

// isStream is for faults of consumer groups.
func isStream(t Target) string {
	if !strings.HasPrefix(t.Scheme, "redis+streams") {
		return "the queue has no consumer group of Redis"
	}
	return ""
}

// consumedUnderLoad starts a consumer and a producer of all the messages, and
// returns once the trial's moment has come; nil where that proves nothing.
func consumedUnderLoad(ctx context.Context, s Scene) (producer Node, err error) {
	if _, err = s.Start(ctx, Role{Consumer: &Consumer{}}); err != nil {
		return nil, err
	}
	if producer, err = load(ctx, s, Role{Producer: &Producer{Count: s.Target().Messages}}); err != nil {
		return nil, err
	}
	if ok, err := underLoad(ctx, s); !ok {
		return nil, err
	}
	return producer, nil
}
