package rabbitmq

import (
	"context"
	"errors"
	"net/url"

	"queuelab/queue"
)

// Open opens the queue that u names.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	return nil, errors.New("rabbitmq: stub of the first slice, replaced by its package's own work")
}
