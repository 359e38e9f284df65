package redisconn

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// Hear waits for what a subscription brings next. One that is silent for so long
// heard nothing, or its peer is gone: a ping tells, and a silence after it is an
// error.
func Hear(ctx context.Context, sub *redis.PubSub, silence time.Duration) (any, error) {
	for asked := false; ; asked = true {
		v, err := sub.ReceiveTimeout(ctx, silence)
		var timeout interface{ Timeout() bool }
		if err == nil || asked || !errors.As(err, &timeout) || !timeout.Timeout() {
			return v, err
		}
		if err := sub.Ping(ctx); err != nil {
			return nil, err
		}
	}
}
