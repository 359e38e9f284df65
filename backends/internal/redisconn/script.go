package redisconn

import (
	"context"
	"fmt"
	"strings"

	"queuelab/queue"
)

// InScript is how somebody else's script puts messages into the queue: see
// queue.ScriptEnqueuer.
func (b *Base) InScript(ctx context.Context, key, command string, args func(queue.Message) []any) (*queue.ScriptEnqueue, error) {
	if b.Wait > 0 || b.Sentinels != "" {
		return nil, nil
	}
	info, err := b.Control.Info(ctx, "server").Result()
	if err != nil && !IsReply(err) {
		return nil, b.Wrap("ask the server its name", err)
	}
	_, id, told := strings.Cut(info, "\nrun_id:")
	if !told {
		return nil, nil
	}
	id, _, _ = strings.Cut(id, "\r\n")
	return &queue.ScriptEnqueue{Server: fmt.Sprintf("%s/%d", id, b.DB), Key: key, Command: command, Args: args}, nil
}

// PushInScript is InScript for a queue whose publisher is made of Push.
func (b *Base) PushInScript(ctx context.Context, key string) (*queue.ScriptEnqueue, error) {
	return b.InScript(ctx, key, "lpush", func(m queue.Message) []any {
		return []any{Envelopes([]queue.Message{m})[0]}
	})
}

// ScriptEnqueue implements queue.ScriptEnqueuer.
func (l List) ScriptEnqueue(ctx context.Context) (*queue.ScriptEnqueue, error) {
	return l.PushInScript(ctx, l.Key)
}
