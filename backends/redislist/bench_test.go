package redislist_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/redistest"
)

const key = "list:{bench}"

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
				defer x.Client.Del(b.Context(), key)
				return redistest.Timed(way.n, func() error { return x.Publish(p, way.n, way.callers, way.batch) })
			}, func() (float64, error) {
				defer x.Client.Del(b.Context(), "mylist")
				return x.Tool(way.n, way.callers, way.batch, "-t", "lpush", "-d", "100")
			})
		})
	}
}

// BenchmarkReceive compares with a client that pops as many at once, by itself:
// redis-benchmark, which looks at nothing that it gets, and a bare go-redis loop.
func BenchmarkReceive(b *testing.B) {
	const n = 200_000
	for _, batch := range []int{1, 100, 500} {
		x := backend.Bench(b, fmt.Sprintf("batch=%d", batch))
		p, c := x.Publisher(), x.Consumer()
		n := n
		if batch == 1 {
			n /= 10
		}
		fill := func() {
			if err := x.Publish(p, n, 1, 500); err != nil {
				b.Fatal(err)
			}
		}
		ours := func() (float64, error) {
			fill()
			return redistest.Timed(n, func() error { return x.Consume(c, n, batch) })
		}
		b.Run(fmt.Sprintf("batch=%d/tool", batch), func(b *testing.B) {
			redistest.Pairs(b, ours, func() (float64, error) {
				fill()
				defer x.Client.Del(b.Context(), key)
				rate, err := x.Tool(n/batch, 1, 1, "rpop", key, fmt.Sprint(batch))
				return rate * float64(batch), err
			})
		})
		b.Run(fmt.Sprintf("batch=%d/bare", batch), func(b *testing.B) {
			redistest.Pairs(b, ours, func() (float64, error) {
				fill()
				return redistest.Timed(n, func() error { return pop(x.Client, n, batch) })
			})
		})
	}
}

func pop(c *redis.Client, n, batch int) error {
	ctx := context.Background()
	for n > 0 {
		if batch == 1 {
			if err := c.BRPop(ctx, time.Second, key).Err(); err != nil {
				return err
			}
			n--
			continue
		}
		_, got, err := c.BLMPop(ctx, time.Second, "right", int64(batch), key).Result()
		if err != nil {
			return err
		}
		n -= len(got)
	}
	return nil
}
