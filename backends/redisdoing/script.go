package redisdoing

import (
	"context"

	"queuelab/queue"
)

// ScriptEnqueue implements queue.ScriptEnqueuer.
func (q *doing) ScriptEnqueue(ctx context.Context) (*queue.ScriptEnqueue, error) {
	return q.PushInScript(ctx, q.pending)
}
