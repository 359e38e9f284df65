package main

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"queuelab/app/admission"
	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/app/worker"
	"queuelab/backends"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

// The service's own settings.
const (
	benchLanes = 4
	benchBatch = 256
	// benchRounds are measured, and their median told.
	benchRounds = 5
)

// BenchmarkConsumer compares, turn by turn, how many orders a second the worker
// commits with what batched inserts alone reach on the same PostgreSQL, and with
// what the queue's bare consumer reaches; the goal is the smaller of 70 % of the
// one and 80 % of the other. Its iterations are orders: -benchtime=100000x.
func BenchmarkConsumer(b *testing.B) {
	db := postgres(b)
	s, err := store.Open(b.Context(), db)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	gate, err := admission.OpenRedis(b.Context(), brokertest.Start(b, "redis", "aof-everysec").URL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { gate.Close() })
	for _, q := range []struct{ name, kind, setting, scheme, query string }{
		{"memory", "", "", "", ""},
		{"redis-streams", "redis", "aof-everysec", "redis+streams", ""},
		{"rabbitmq", "rabbitmq", "", "amqp", "type=quorum&prefetch=512"},
		{"kafka", "kafka", "", "kafka", ""},
	} {
		b.Run(q.name, func(b *testing.B) {
			url := "memory://bench?capacity=1000000"
			if q.kind != "" {
				url = brokertest.Start(b, q.kind, q.setting).QueueURL(q.scheme, fmt.Sprintf("bench%d", time.Now().UnixNano()), q.query)
			}
			// The machine is not quiet, so what is compared is measured turn by turn.
			var inserts, bare, commits, goal [benchRounds]float64
			for i := range benchRounds {
				n := max(b.N/benchRounds, 1)
				inserts[i] = benchInserts(b, db, n)
				bare[i] = benchQueue(b, url, n, nil)
				commits[i] = benchWorker(b, url, s, gate, n)
				goal[i] = 100 * commits[i] / min(0.7*inserts[i], 0.8*bare[i])
			}
			b.ReportMetric(0, "ns/op")
			for name, got := range map[string][]float64{"inserts/s": inserts[:], "bare/s": bare[:], "commits/s": commits[:], "%_of_goal": goal[:]} {
				slices.Sort(got)
				b.ReportMetric(got[benchRounds/2], name)
			}
		})
	}
}

// benchInserts has as many connections as the worker has lanes insert batches of
// rows like orders, and returns rows a second.
func benchInserts(b *testing.B, db string, n int) float64 {
	b.Helper()
	raw, err := sql.Open("pgx", db)
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	raw.SetMaxIdleConns(benchLanes)
	voucher := time.Now().UnixNano()
	values := strings.Builder{}
	for i := range benchBatch {
		fmt.Fprintf(&values, "($%d,$%d,$%d,0,'confirmed','',1,1,0,0,0,0),", 3*i+1, 3*i+2, 3*i+3)
	}
	query := "INSERT INTO orders (id, voucher_id, user_id, nth, status, reason, admitted_ms, decided_ms, pay_by_ms, paid_ms, closed_ms, give_back) VALUES " +
		strings.TrimSuffix(values.String(), ",")
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range benchLanes {
		wg.Go(func() {
			insert, err := raw.PrepareContext(b.Context(), query)
			if err != nil {
				b.Error(err)
				return
			}
			defer insert.Close()
			for first := next.Add(benchBatch) - benchBatch; first < int64(n); first = next.Add(benchBatch) - benchBatch {
				args := make([]any, 0, 3*benchBatch)
				for i := range int64(benchBatch) {
					args = append(args, voucher+first+i, voucher, fmt.Sprint("user", first+i))
				}
				if _, err := insert.ExecContext(b.Context(), args...); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(n) / time.Since(began).Seconds()
}

// benchQueue fills a queue of its own and has it drained; run is what drains it
// (nil: acks alone) and calls done for each message. It returns messages a second.
func benchQueue(b *testing.B, url string, n int, run func(ctx context.Context, c queue.Consumer, caps queue.Capabilities, done func(int)) error, msgs ...queue.Message) float64 {
	b.Helper()
	q, err := backends.Open(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := q.Delete(context.Background()); err != nil {
			b.Error(err)
		}
		q.Close()
	}()
	c, err := q.Consumer(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	p, err := q.Publisher(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	if msgs == nil {
		msgs = benchMessages(1, n)
	}
	for i := 0; i < n; i += 500 {
		if err := p.Publish(b.Context(), msgs[i:min(n, i+500)]...); err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	var handled atomic.Int64
	done := func(k int) {
		if handled.Add(int64(k)) >= int64(n) {
			cancel()
		}
	}
	if run == nil {
		run = func(ctx context.Context, c queue.Consumer, _ queue.Capabilities, done func(int)) error {
			w := &queue.Worker{Consumer: c, Lanes: benchLanes, Batch: benchBatch, DrainTimeout: time.Minute,
				Handle: func(_ context.Context, ds []*queue.Delivery) []error { done(len(ds)); return nil }}
			return w.Run(ctx)
		}
	}
	began := time.Now()
	if err := run(ctx, c, q.Capabilities(), done); err != nil {
		b.Fatal(err)
	}
	if got := handled.Load(); got < int64(n) {
		b.Fatalf("got %d of %d messages", got, n)
	}
	return float64(n) / time.Since(began).Seconds()
}

func benchMessages(voucher sale.ID, n int) []queue.Message {
	msgs := make([]queue.Message, n)
	first := sale.ID(time.Now().UnixNano())
	for i := range msgs {
		r := sale.Reservation{OrderID: first + sale.ID(i), VoucherID: voucher, UserID: fmt.Sprint("user", i), AtMillis: time.Now().UnixMilli()}
		id := r.OrderID.String()
		msgs[i] = queue.Message{ID: id, Key: id, Body: r.Encode()}
	}
	return msgs
}

// counter is an Observer that counts decisions.
type counter struct {
	sale.Unobserved
	done func(int)
}

func (c counter) Decided(sale.Order, time.Duration) { c.done(1) }

// benchWorker has the service's worker decide the orders of one hot voucher.
func benchWorker(b *testing.B, url string, s *store.Store, gate sale.Gate, n int) float64 {
	b.Helper()
	now := time.Now()
	v := sale.Voucher{ID: sale.ID(now.UnixNano()), Title: "tea", Stock: int64(n), Left: int64(n), Begin: now.Add(-time.Hour), End: now.Add(time.Hour), Created: now, PerUser: 1}
	if err := s.CreateVoucher(b.Context(), v); err != nil {
		b.Fatal(err)
	}
	if _, err := gate.Load(b.Context(), v); err != nil {
		b.Fatal(err)
	}
	msgs := benchMessages(v.ID, n)
	rs := make([]sale.Reservation, n)
	for i, m := range msgs {
		r, err := sale.DecodeReservation(m.Body)
		if err != nil {
			b.Fatal(err)
		}
		rs[i] = r
	}
	for i := 0; i < n; i += 500 {
		if err := gate.Restore(b.Context(), rs[i:min(n, i+500)]...); err != nil {
			b.Fatal(err)
		}
	}
	run := func(ctx context.Context, c queue.Consumer, caps queue.Capabilities, done func(int)) error {
		w := &worker.Worker{Store: s, Gate: gate, Results: sale.NewResults(s, func(error) {}), Observer: counter{done: done}, Log: slog.New(slog.DiscardHandler),
			Lanes: benchLanes, Batch: benchBatch, MaxAttempts: 5, Drain: time.Minute}
		return w.Run(ctx, c, caps)
	}
	rate := benchQueue(b, url, n, run, msgs...)
	if got, err := s.Voucher(b.Context(), v.ID); err != nil || got.Left != 0 {
		b.Fatalf("got %d left, %v, want 0", got.Left, err)
	}
	return rate
}
