package redisconn

import (
	"context"

	"github.com/redis/go-redis/v9"

	"queuelab/queue"
)

// Push sends values to the head of a list. It is one command for all: the server
// takes all of them or none.
func Push(key string) func(ctx context.Context, c *redis.Client, values []*Value, results []Sent) {
	return func(ctx context.Context, c *redis.Client, values []*Value, results []Sent) {
		args := make([]any, 0, len(values)+2)
		args = append(args, "lpush", key)
		for _, v := range values {
			args = append(args, v)
		}
		err := c.Process(ctx, redis.NewIntCmd(ctx, args...))
		for i := range results {
			results[i].Err = err
		}
	}
}

// Lengths counts what waits on lists, which know nothing of deliveries.
func (b *Base) Lengths(ctx context.Context, keys ...string) (queue.Backlog, error) {
	pipe := b.Control.Pipeline()
	lengths := make([]*redis.IntCmd, len(keys))
	for i, key := range keys {
		lengths[i] = pipe.LLen(ctx, key)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return queue.Backlog{}, b.Wrap("count the backlog", err)
	}
	backlog := queue.Backlog{InFlight: -1, Dead: -1}
	for _, n := range lengths {
		backlog.Ready += n.Val()
	}
	return backlog, nil
}

// Unlink removes keys. Those that are not there are no error.
func (b *Base) Unlink(ctx context.Context, keys ...string) error {
	if err := b.Control.Unlink(ctx, keys...).Err(); err != nil {
		return b.Wrap("delete", err)
	}
	return nil
}
