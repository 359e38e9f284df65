package redisstreams

import (
	"context"
	"slices"

	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

// ScriptEnqueue implements queue.ScriptEnqueuer.
func (q *streams) ScriptEnqueue(ctx context.Context) (*queue.ScriptEnqueue, error) {
	return q.InScript(ctx, q.stream, "xadd", func(m queue.Message) []any {
		body := redisconn.Value(slices.Clone(m.Body))
		return q.fields(make([]any, 0, 10+2*len(m.Headers)), &m, &body)
	})
}
