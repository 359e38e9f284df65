package kafka

import (
	"fmt"
	"sync/atomic"
	"testing"

	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

// Both measure messages, not calls: b.N of them. The broker's share is in the
// time, and not in the allocations.

func BenchmarkPublish(b *testing.B) {
	for _, client := range []string{"kafka-go", "franz"} {
		for _, c := range []struct {
			callers, batch int
			params         string
		}{
			{1, 1, ""}, {100, 1, ""}, {16, 64, ""}, {16, 500, ""}, {16, 500, "preset=throughput"}, {16, 500, "acks=1"}, {16, 500, "acks=0"},
		} {
			b.Run(fmt.Sprintf("%s/%d-callers-of-%d/%s", client, c.callers, c.batch, c.params), func(b *testing.B) {
				q := openAt(b, brokertest.Start(b, "kafka", "default"), topicFor(b), "client="+client, c.params)
				benchmarkPublish(b, q, c.callers, c.batch)
			})
		}
	}
}

func benchmarkPublish(b *testing.B, q *topicQueue, callers, batch int) {
	p := publisherOf(b, q)
	body := make([]byte, 100)
	if err := p.Publish(b.Context(), queue.Message{ID: "first", Body: body}); err != nil {
		b.Fatal(err)
	}
	ms := make([]queue.Message, batch)
	for i := range ms {
		ms[i] = queue.Message{ID: fmt.Sprint("message-", i), Body: body}
	}
	var sent atomic.Int64
	done := make(chan error, callers)
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		go func() {
			for sent.Add(int64(batch))-int64(batch) < int64(b.N) {
				if err := p.Publish(b.Context(), ms...); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

func BenchmarkConsume(b *testing.B) {
	for _, client := range []string{"kafka-go", "franz"} {
		for _, batch := range []int{1, 100, 512} {
			for _, params := range []string{"", "preset=throughput"} {
				b.Run(fmt.Sprintf("%s/acked-by-%d/%s", client, batch, params), func(b *testing.B) {
					q := openAt(b, brokertest.Start(b, "kafka", "default"), topicFor(b), "client="+client, params)
					fill(b, q, b.N)
					c := consumerOf(b, q)
					b.ReportAllocs()
					b.ResetTimer()
					for n := 0; n < b.N; {
						ds, err := c.Receive(b.Context(), batch)
						if err == nil {
							err = c.Ack(b.Context(), ds...)
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
