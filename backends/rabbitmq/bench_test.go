package rabbitmq

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"queuelab/queue"
)

// BenchmarkThrough publishes and consumes at the same time, 100-byte messages,
// as RabbitMQ's own PerfTest does. One operation is one message, from Publish
// to its ack.
func BenchmarkThrough(b *testing.B) {
	for _, setting := range []string{
		"type=classic", "type=quorum", "persistent=false&confirm=false&auto-ack=true",
	} {
		for _, knobs := range []string{"preset=latency", "prefetch=64", "preset=throughput"} {
			b.Run(setting+"/"+knobs, func(b *testing.B) {
				q := open(b, setting, knobs)
				c := newConsumer(b, q)
				p := newPublisher(b, q)
				const batch, publishers = 100, 20
				b.ResetTimer()
				var wg sync.WaitGroup
				for g := range publishers {
					wg.Go(func() {
						for from := g * batch; from < b.N; from += publishers * batch {
							if err := p.Publish(context.Background(), payload(from, min(batch, b.N-from))...); err != nil {
								b.Error(err)
							}
						}
					})
				}
				for left := b.N; left > 0; {
					ds, err := c.Receive(context.Background(), batch)
					if err != nil {
						b.Fatal(err)
					}
					if err := c.Ack(context.Background(), ds...); err != nil {
						b.Fatal(err)
					}
					left -= len(ds)
				}
				b.StopTimer()
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
			})
		}
	}
}

func payload(from, n int) []queue.Message {
	ms := make([]queue.Message, n)
	for i := range ms {
		ms[i] = queue.Message{ID: fmt.Sprint("1-1-0-", from+i), Key: fmt.Sprint("user-", (from+i)%1000), Body: make([]byte, 100)}
	}
	return ms
}
