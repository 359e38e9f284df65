package redispubsub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"queuelab/backends/internal/envelope"
	"queuelab/backends/internal/redistest"
)

const channel = "pubsub:0:{bench}"

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
				return redistest.Timed(way.n, func() error { return x.Publish(p, way.n, way.callers, way.batch) })
			}, func() (float64, error) {
				return x.Tool(way.n, way.callers, way.batch, "publish", channel, strings.Repeat("x", len(redistest.Body)))
			})
		})
	}
}

// flood publishes without a client that would need a processor for it.
const flood = `for _ = 1, ARGV[1] do redis.call('PUBLISH', KEYS[1], ARGV[2]) end return 1`

// BenchmarkReceive compares with a bare go-redis subscriber. Both are flooded, so
// that they decide.
func BenchmarkReceive(b *testing.B) {
	const n = 200_000
	x := backend.Bench(b, "buffer=1000000")
	value := envelope.Append(nil, redistest.Messages(1)[0])
	// hear is the rate from the first message on.
	hear := func(receive func() error) (float64, error) {
		sent := make(chan error, 1)
		go func() {
			var err error
			for range n / 100 {
				err = errors.Join(err, x.Client.Eval(context.Background(), flood, []string{channel}, 100, value).Err())
			}
			sent <- err
		}()
		if err := receive(); err != nil {
			return 0, err
		}
		rate, err := redistest.Timed(n-1, func() error {
			for range n - 1 {
				if err := receive(); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			err = <-sent
		}
		return rate, err
	}
	for _, most := range []int{1, 100, 500} {
		b.Run(fmt.Sprintf("batch=%d", most), func(b *testing.B) {
			redistest.Pairs(b, func() (float64, error) {
				c := x.Consumer()
				defer c.Close()
				left := 0
				return hear(func() error {
					if left--; left >= 0 {
						return nil
					}
					ds, err := c.Receive(context.Background(), most)
					if err == nil {
						err = c.Ack(context.Background(), ds...)
					}
					left = len(ds) - 1
					return err
				})
			}, func() (float64, error) {
				sub := x.Client.Subscribe(context.Background(), channel)
				defer sub.Close()
				if _, err := sub.Receive(context.Background()); err != nil {
					return 0, err
				}
				return hear(func() error {
					_, err := sub.ReceiveMessage(context.Background())
					return err
				})
			})
		})
	}
}
