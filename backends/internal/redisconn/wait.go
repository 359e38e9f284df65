package redisconn

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// replicated makes every write of a publisher's client wait for replicas. WAIT
// speaks of its own connection's writes only, so that it travels with them, in one
// pipeline. What too few replicas have is on the master, and may survive or not:
// its error is none of the server's answers, so that it is unknown.
type replicated struct {
	client *redis.Client
	needed int
	limit  time.Duration // that the server waits; below the client's patience for an answer
}

// waits marks the context of a publisher's writes: go-redis sets its connections
// up by commands that pass the same hooks.
type waits struct{}

func marked(ctx context.Context) bool { return ctx.Value(waits{}) == true }

// DialHook implements redis.Hook.
func (r replicated) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook implements redis.Hook.
func (r replicated) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !marked(ctx) {
			return next(ctx, cmd)
		}
		pipe := r.client.Pipeline()
		_ = pipe.Process(ctx, cmd) // only queues it
		_, _ = pipe.Exec(ctx)      // the command has its own error
		return cmd.Err()
	}
}

// ProcessPipelineHook implements redis.Hook.
func (r replicated) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !marked(ctx) {
			return next(ctx, cmds)
		}
		ctx = context.WithValue(ctx, waits{}, false)
		wait := redis.NewIntCmd(ctx, "wait", r.needed, r.limit.Milliseconds())
		err := next(ctx, append(cmds[:len(cmds):len(cmds)], wait))
		var missing error
		switch n, werr := wait.Result(); {
		case IsReply(werr):
			missing = fmt.Errorf("wait for %d replicas: %v", r.needed, werr) //nolint:errorlint // the write itself was not refused
		case werr != nil:
			missing = fmt.Errorf("wait for %d replicas: %w", r.needed, werr)
		case n < int64(r.needed):
			missing = fmt.Errorf("%d of %d replicas had it within %v", n, r.needed, r.limit)
		default:
			return err
		}
		for _, cmd := range cmds {
			if cmd.Err() == nil {
				cmd.SetErr(missing)
			}
		}
		return missing
	}
}
