package redisstreams

import (
	"context"

	"queuelab/queue"
)

// ScriptEnqueue implements queue.ScriptEnqueuer.
func (q *streams) ScriptEnqueue(ctx context.Context) (*queue.ScriptEnqueue, error) {
	return q.InScript(ctx, q.stream, "xadd", func(m queue.Message) []any {
		return q.adds([]queue.Message{m})[0].Args()[2:] // after the command and the key
	})
}
