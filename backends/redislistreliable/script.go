package redislistreliable

import (
	"context"

	"queuelab/queue"
)

// ScriptEnqueue implements queue.ScriptEnqueuer.
func (q *reliable) ScriptEnqueue(ctx context.Context) (*queue.ScriptEnqueue, error) {
	return q.PushInScript(ctx, q.key)
}
