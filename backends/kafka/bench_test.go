package kafka

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

// benchmarkPublish measures messages, not calls: b.N of them in batches.
func benchmarkPublish(b *testing.B, callers, batch int, params ...string) {
	q := openAt(b, brokertest.Start(b, "kafka", "default"), topicFor(b), params...)
	p, err := q.Publisher(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	body := make([]byte, 100)
	if err := p.Publish(b.Context(), queue.Message{ID: "first", Body: body}); err != nil {
		b.Fatal(err)
	}
	var sent atomic.Int64
	done := make(chan error, callers)
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		go func() {
			ms := make([]queue.Message, batch)
			for {
				n := sent.Add(int64(batch))
				if n-int64(batch) >= int64(b.N) {
					done <- nil
					return
				}
				for i := range ms {
					ms[i] = queue.Message{ID: fmt.Sprint(n, "-", i), Body: body}
				}
				if err := p.Publish(b.Context(), ms...); err != nil {
					done <- err
					return
				}
			}
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

func BenchmarkPublishLone(b *testing.B)       { benchmarkPublish(b, 1, 1) }
func BenchmarkPublish100Callers(b *testing.B) { benchmarkPublish(b, 100, 1) }
func BenchmarkPublish100CallersAcks1(b *testing.B) {
	benchmarkPublish(b, 100, 1, "acks=1")
}
func BenchmarkPublish100CallersAcks0(b *testing.B) {
	benchmarkPublish(b, 100, 1, "acks=0")
}
func BenchmarkPublishBatches100(b *testing.B) { benchmarkPublish(b, 4, 100) }

func BenchmarkConsume(b *testing.B) {
	for _, batch := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("acked-by-%d", batch), func(b *testing.B) {
			q := openAt(b, brokertest.Start(b, "kafka", "default"), topicFor(b))
			fill(b, q, b.N)
			c := consumerOf(b, q)
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; {
				ds, err := c.Receive(b.Context(), batch)
				if err == nil {
					err = c.Ack(context.Background(), ds...)
				}
				if err != nil {
					b.Fatal(err)
				}
				n += len(ds)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

func fill(tb testing.TB, q *topicQueue, n int) {
	tb.Helper()
	p, err := q.Publisher(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	body := make([]byte, 100)
	for sent := 0; sent < n; {
		ms := make([]queue.Message, min(1000, n-sent))
		for i := range ms {
			ms[i] = queue.Message{ID: fmt.Sprint(sent + i), Body: body}
		}
		if err := p.Publish(tb.Context(), ms...); err != nil {
			tb.Fatal(err)
		}
		sent += len(ms)
	}
}
