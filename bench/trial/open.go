package trial

import (
	"context"
	"fmt"
	"time"

	"queuelab/backends"
	"queuelab/queue"
)

// Capabilities opens a queue of the setting, on its real broker, and returns
// what it promises there.
func (l *Lab) Capabilities(ctx context.Context, s Setting) (queue.Capabilities, error) {
	b, err := l.broker(ctx, s)
	if err != nil {
		return queue.Capabilities{}, fmt.Errorf("%s: %w", s, err)
	}
	raw := l.queueURL(b, s, fmt.Sprintf("lab%d", l.nextTrial()))
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	q, err := backends.Open(ctx, raw)
	if err != nil {
		return queue.Capabilities{}, fmt.Errorf("%s: %w", s, err)
	}
	defer q.Close()
	caps := q.Capabilities()
	if err := q.Delete(ctx); err != nil {
		return queue.Capabilities{}, fmt.Errorf("%s: %w", s, err)
	}
	return caps, nil
}
