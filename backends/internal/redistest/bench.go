package redistest

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"queuelab/bench/broker"
	"queuelab/queue"
)

var body = make([]byte, 100)

// BenchmarkPublish measures single-message publishes by 1 and by 100 callers of
// one publisher. It is closed-loop: compare it with redis-benchmark -c 100 in
// the same minute, and with nothing else.
func (b Backend) BenchmarkPublish(tb *testing.B, server *broker.Broker, query string) {
	for _, callers := range []int{1, 100} {
		tb.Run("callers="+strconv.Itoa(callers), func(tb *testing.B) {
			q := b.fresh(tb, server, query)
			p, err := q.Publisher(tb.Context())
			if err != nil {
				tb.Fatal(err)
			}
			publish(tb, p, callers, tb.N)
			rate(tb)
		})
	}
}

func publish(tb *testing.B, p queue.Publisher, callers, n int) {
	tb.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	tb.ReportAllocs()
	tb.ResetTimer()
	for range callers {
		wg.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(n) {
					return
				}
				m := queue.Message{ID: "1-0-0-" + strconv.FormatInt(i, 10), Key: "k", Body: body}
				if err := p.Publish(tb.Context(), m); err != nil {
					tb.Errorf("publish: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	tb.StopTimer()
}

// BenchmarkReceive measures taking and acking a backlog: one by one, and a
// hundred at a time with an ack of its own for each, from as many goroutines.
func (b Backend) BenchmarkReceive(tb *testing.B, server *broker.Broker, query string) {
	for _, callers := range []int{1, 100} {
		tb.Run("callers="+strconv.Itoa(callers), func(tb *testing.B) {
			q := b.fresh(tb, server, query)
			c, p := Both(tb, q)
			ms := make([]queue.Message, 1000)
			for i := 0; i < tb.N; i += len(ms) {
				for j := range ms {
					ms[j] = queue.Message{ID: strconv.Itoa(i + j), Key: "k", Body: body}
				}
				if err := p.Publish(tb.Context(), ms[:min(len(ms), tb.N-i)]...); err != nil {
					tb.Fatal(err)
				}
			}
			tb.ReportAllocs()
			tb.ResetTimer()
			for n := 0; n < tb.N; {
				ds, err := c.Receive(tb.Context(), callers)
				if err != nil {
					tb.Fatal(err)
				}
				n += len(ds)
				var wg sync.WaitGroup
				for _, d := range ds {
					wg.Go(func() {
						if err := c.Ack(tb.Context(), d); err != nil {
							tb.Errorf("ack: %v", err)
						}
					})
				}
				wg.Wait()
			}
			tb.StopTimer()
			rate(tb)
		})
	}
}

func rate(tb *testing.B) { tb.ReportMetric(float64(tb.N)/tb.Elapsed().Seconds(), "msg/s") }

func (b Backend) fresh(tb *testing.B, server *broker.Broker, query string) queue.Queue {
	q := b.Queue(tb, server, "bench", query)
	if err := q.Delete(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	if err := q.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Queue(tb, server, "bench", query) // with its group
}
