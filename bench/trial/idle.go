package trial

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/bench/broker"
)

// settleRedis waits until Redis has handed its append-only file to the operating
// system. While an fsync is under way Redis answers before it writes, for up to
// two seconds, so that a kill on a slow disk loses what a healthy disk keeps:
// that is a fault of its own, and this trial is not about it.
func settleRedis(ctx context.Context, b *broker.Broker) error {
	o, err := redis.ParseURL(b.URL())
	if err != nil {
		return err
	}
	o.MaxRetries = -1
	client := redis.NewClient(o)
	defer client.Close()
	return waitFor(ctx, "Redis to write out its append-only file", 15*time.Second, 20*time.Millisecond, func() (bool, error) {
		info, err := client.Info(ctx, "persistence").Result()
		if err != nil {
			return false, fmt.Errorf("ask Redis for its persistence: %w", err)
		}
		if strings.Contains(info, "aof_enabled:0") {
			return true, nil
		}
		return strings.Contains(info, "aof_buffer_length:0\r\n") && strings.Contains(info, "aof_pending_bio_fsync:0\r\n"), nil
	})
}
