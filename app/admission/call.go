package admission

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// call is one run of a script, and its answer.
type call struct {
	script *redis.Script
	*redis.Cmd
}

func run(ctx context.Context, s *redis.Script, keys []string, args ...any) call {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, "evalsha", s.Hash(), len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	return call{s, redis.NewCmd(ctx, append(all, args...)...)}
}

// exec runs scripts in one round trip, in order where they are on one node. Each
// has its own error, and the first of them is returned.
func (g *Redis) exec(ctx context.Context, calls ...call) error {
	g.process(ctx, calls)
	var missing []call
	loaded := map[*redis.Script]bool{}
	for _, c := range calls {
		if !redis.HasErrorPrefix(c.Err(), "NOSCRIPT") {
			continue
		}
		if !loaded[c.script] {
			// An error may be that of one node, and the others have it.
			_ = c.script.Load(ctx, g.client).Err()
			loaded[c.script] = true
		}
		c.SetErr(nil)
		missing = append(missing, c)
	}
	if len(missing) > 0 {
		g.process(ctx, missing)
	}
	for _, c := range calls {
		if err := c.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return nil
}

func (g *Redis) process(ctx context.Context, calls []call) {
	if len(calls) == 1 {
		_ = g.client.Process(ctx, calls[0].Cmd) // the command has its error
		return
	}
	pipe := g.client.Pipeline()
	for _, c := range calls {
		_ = pipe.Process(ctx, c.Cmd) // only queues it
	}
	_, _ = pipe.Exec(ctx) // the first error of those that each command has
}
