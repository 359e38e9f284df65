package redisstreams_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/redistest"
)

// BenchmarkPublish compares with redis-benchmark: as many callers as it has
// clients, each with as many messages under way.
func BenchmarkPublish(b *testing.B) {
	for _, way := range []struct{ n, callers, batch int }{
		{100_000, 100, 1}, {400_000, 16, 16},
	} {
		b.Run(fmt.Sprintf("callers=%d/batch=%d", way.callers, way.batch), func(b *testing.B) {
			x := backend.Bench(b, "")
			p := x.Publisher()
			redistest.Pairs(b, func() (float64, error) {
				defer x.Client.XTrimMaxLen(b.Context(), stream("bench"), 0)
				return redistest.Timed(way.n, func() error { return x.Publish(p, way.n, way.callers, way.batch) })
			}, func() (float64, error) {
				defer x.Client.Del(b.Context(), "mystream")
				return x.Tool(way.n, way.callers, way.batch, "xadd", "mystream", "*",
					"id", "1-0-0-100", "body", strings.Repeat("x", len(redistest.Body)), "key", "k")
			})
		})
	}
}

// BenchmarkReceive compares with a bare go-redis loop: read so many, ack them
// all at once.
func BenchmarkReceive(b *testing.B) {
	const n = 100_000
	for _, batch := range []int{1, 100, 500} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			x := backend.Bench(b, "")
			p, c := x.Publisher(), x.Consumer()
			n := n
			if batch == 1 {
				n /= 10
			}
			fill := func() {
				x.Client.XTrimMaxLen(b.Context(), stream("bench"), 0)
				if err := x.Publish(p, n, 1, 500); err != nil {
					b.Fatal(err)
				}
			}
			redistest.Pairs(b, func() (float64, error) {
				fill()
				return redistest.Timed(n, func() error { return x.Consume(c, n, batch) })
			}, func() (float64, error) {
				fill()
				return redistest.Timed(n, func() error { return bare(x.Client, n, batch) })
			})
		})
	}
}

func bare(c *redis.Client, n, batch int) error {
	ctx := context.Background()
	args := &redis.XReadGroupArgs{Group: group, Consumer: "bare", Count: int64(batch), Block: time.Second,
		Streams: []string{stream("bench"), ">"}}
	for n > 0 {
		got, err := c.XReadGroup(ctx, args).Result()
		if err != nil {
			return err
		}
		ids := make([]string, len(got[0].Messages))
		for i, m := range got[0].Messages {
			ids[i] = m.ID
		}
		if err := c.XAck(ctx, stream("bench"), group, ids...).Err(); err != nil {
			return err
		}
		n -= len(ids)
	}
	return nil
}
