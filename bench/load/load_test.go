package load

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"queuelab/bench/ledger"
	"queuelab/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a publisher that does what a test wants.
type fake func(ctx context.Context, msgs []queue.Message) error

func (f fake) Publish(ctx context.Context, msgs ...queue.Message) error { return f(ctx, msgs) }
func (f fake) Close() error                                             { return nil }

// fakeClockWait is WaitUntil for synctest, whose clock no system call follows.
func fakeClockWait(ctx context.Context, until int64) error {
	t := time.NewTimer(time.Duration(until - ledger.Now()))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

func TestConstantSpacesMessagesEvenly(t *testing.T) {
	for _, c := range []struct {
		rate float64
		n    uint64
		want time.Duration
	}{
		{1000, 0, 0}, {1000, 1, time.Millisecond}, {1000, 3_600_000, time.Hour},
		{0.5, 3, 6 * time.Second}, {3, 1, 333333333}, {1e6, 1, time.Microsecond},
		{0, 1, math.MaxInt64}, {0, 0, math.MaxInt64}, {-1, 1, math.MaxInt64}, {math.NaN(), 1, math.MaxInt64}, {1e-9, 1e9, math.MaxInt64},
	} {
		if got := Constant(c.rate).Due(c.n); got != c.want {
			t.Errorf("Constant(%v).Due(%d): got %v, want %v", c.rate, c.n, got, c.want)
		}
	}
}

func TestConstantNeverDecreases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Constant(rapid.Float64().Draw(t, "rate"))
		n := rapid.Uint64().Draw(t, "n")
		if a, b := p.Due(n), p.Due(n+min(1, math.MaxUint64-n)); a > b || a < 0 {
			t.Errorf("message %d is due at %v, the next at %v", n, a, b)
		}
	})
}

// One synchronous worker, 1,000 messages a second for 30 s, 0.2 ms each, and
// one freeze of a second. With f = (T/D)/(1-λs) the share of delayed messages,
// the latency from due is T(1-(1-p)/f) at quantile p.
func TestAFreezeShowsFromDueAndHidesFromSend(t *testing.T) {
	const (
		rate    = 1000
		service = 200 * time.Microsecond
		freeze  = time.Second
		length  = 30 * time.Second
	)
	path := filepath.Join(t.TempDir(), "ledger")
	var stats Stats
	synctest.Test(t, func(t *testing.T) {
		w, err := ledger.Create(path, 1)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		frozen := false
		p := fake(func(context.Context, []queue.Message) error {
			if !frozen && time.Since(start) >= length/3 {
				frozen = true
				time.Sleep(freeze)
			}
			time.Sleep(service)
			return nil
		})
		stats, err = Run(t.Context(), Generator{
			Pacer: Constant(rate), Publisher: ledger.RecordPublisher(p, w), Message: Source{Trial: 1}.Messages(),
			Count: rate * uint64(length/time.Second), MaxInFlight: 1, wait: fakeClockWait,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	})
	rs, err := ledger.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	r := ledger.Account(ledger.Input{Records: rs})
	if r.Sent != 30_000 || r.Accepted != 30_000 || r.OutOfRange != 0 || r.Publish.TotalCount() != 30_000 {
		t.Fatalf("got %+v, %d out of range, %d latencies", r.Counts, r.OutOfRange, r.Publish.TotalCount())
	}

	f := (freeze.Seconds() / length.Seconds()) / (1 - rate*service.Seconds())
	near := func(what string, got int64, want time.Duration) {
		t.Helper()
		if diff := time.Duration(got) - want; diff.Abs() > want/200+time.Millisecond {
			t.Errorf("%s: got %v, want %v", what, time.Duration(got), want)
		}
	}
	for _, q := range []float64{97, 99, 99.9} {
		want := time.Duration(float64(freeze) * (1 - (1-q/100)/f))
		near("from due", r.Publish.ValueAtQuantile(q), want)
		near("lateness", r.Lateness.ValueAtQuantile(q), want)
		if got := time.Duration(r.PublishFromSend.ValueAtQuantile(q)); got < service || got > service+time.Microsecond {
			t.Errorf("from send, p%v: got %v, want the false %v", q, got, service)
		}
	}
	near("from due, max", r.Publish.Max(), freeze+service)
	near("from send, max", r.PublishFromSend.Max(), freeze+service)
	near("from due, mean", int64(r.Publish.Mean()), 21100*time.Microsecond)
	near("stats, max", int64(stats.MaxLateness), freeze+service-time.Millisecond)
	near("stats, p99", int64(stats.P99Lateness), time.Duration(float64(freeze)*(1-.01/f)))
}

// A generator that may have many calls under way is never late, whatever the
// queue does.
func TestAnOpenLoopDoesNotWaitForAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fake(func(context.Context, []queue.Message) error { time.Sleep(time.Second); return nil })
		s, err := Run(t.Context(), Generator{Pacer: Constant(100), Publisher: p, Message: Source{}.Messages(), Count: 501, wait: fakeClockWait})
		if err != nil {
			t.Fatal(err)
		}
		if s.MaxLateness != 0 || s.Sent != 501 || s.Accepted != 501 || s.Model != "open" ||
			math.Abs(s.Achieved-100) > 1e-9 || math.Abs(s.Offered-100) > 1e-9 {
			t.Errorf("got %+v, want 501 sent at 100/s and never late", s)
		}
	})
}

func TestInFlightIsBoundedAndTheWaitIsLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		p := fake(func(context.Context, []queue.Message) error {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(100 * time.Millisecond)
			now.Add(-1)
			return nil
		})
		s, err := Run(t.Context(), Generator{Pacer: Constant(100), Publisher: p, Message: Source{}.Messages(), Count: 100, MaxInFlight: 5, wait: fakeClockWait})
		if err != nil {
			t.Fatal(err)
		}
		// 5 in flight take 50 a second: half the offered rate. Message 99 is due
		// at 990 ms and begins as the first of the twentieth five, plus its place.
		if most.Load() != 5 || s.MaxLateness < 900*time.Millisecond || s.Achieved > 0.6*s.Offered {
			t.Errorf("got %d in flight and %+v, want 5 and a second of lateness at half the rate", most.Load(), s)
		}
	})
}

func TestEachMessageOfABatchHasItsOwnDueTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ledger")
		w, err := ledger.Create(path, 1)
		if err != nil {
			t.Fatal(err)
		}
		start := ledger.Now() + int64(time.Second)
		var sizes []int
		p := fake(func(_ context.Context, msgs []queue.Message) error { sizes = append(sizes, len(msgs)); return nil })
		_, err = Run(t.Context(), Generator{Pacer: Constant(1000), Publisher: ledger.RecordPublisher(p, w), Message: Source{}.Messages(),
			Count: 7, Batch: 3, Start: start, MaxInFlight: 1, wait: fakeClockWait})
		w.Close()
		if err != nil || len(sizes) != 3 || sizes[0] != 3 || sizes[1] != 3 || sizes[2] != 1 {
			t.Fatalf("got batches of %v, error %v", sizes, err)
		}
		rs, err := ledger.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rs {
			if r.Event != ledger.Intent {
				continue
			}
			due := start + int64(r.Seq)*int64(time.Millisecond)
			last := start + int64(min(r.Seq/3*3+2, 6))*int64(time.Millisecond)
			if r.Due != due || r.At != last {
				t.Errorf("message %d: got due %d, sent %d, want %d, %d", r.Seq, r.Due, r.At, due, last)
			}
		}
	})
}

func TestTheEndOfTheContextEndsTheScheduleAndNotTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second+time.Microsecond)
		defer cancel()
		var cut atomic.Int64
		p := fake(func(ctx context.Context, _ []queue.Message) error {
			select {
			case <-time.After(3 * time.Second):
				return nil
			case <-ctx.Done():
				cut.Add(1)
				return ctx.Err()
			}
		})
		g := Generator{Pacer: Constant(10), Publisher: p, Message: Source{}.Messages(), wait: fakeClockWait}
		s, err := Run(ctx, g)
		if err != nil || s.Sent != 11 || s.Accepted != 11 || cut.Load() != 0 {
			t.Errorf("got %+v, %v, %d calls cut short, want 11 of 11", s, err, cut.Load())
		}
		g.Timeout, g.Count = time.Second, 5
		s, err = Run(t.Context(), g)
		if err != nil || s.Sent != 5 || s.Accepted != 0 || s.Err != context.DeadlineExceeded.Error() {
			t.Errorf("with a time-out: got %+v, %v, want none accepted", s, err)
		}
		s, err = Run(ctx, g)
		if err != nil || s.Sent != 0 {
			t.Errorf("after the end: got %+v, %v, want nothing sent", s, err)
		}
		never, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		g.Pacer = Constant(0)
		if s, err = Run(never, g); err != nil || s.Sent != 0 {
			t.Errorf("a rate of 0: got %+v, %v, want nothing sent", s, err)
		}
	})
}

func TestAWaiterForASlotLeavesWhenTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p := fake(func(ctx context.Context, _ []queue.Message) error { time.Sleep(5 * time.Second); return nil })
		s, err := Run(ctx, Generator{Pacer: Constant(10), Publisher: p, Message: Source{}.Messages(), MaxInFlight: 2, wait: fakeClockWait})
		if err != nil || s.Sent != 2 {
			t.Errorf("got %+v, %v, want 2 sent", s, err)
		}
	})
}

func TestAClosedLoopIsBoundByItsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		seen := map[string]int{}
		p := fake(func(_ context.Context, msgs []queue.Message) error {
			time.Sleep(100 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			for _, m := range msgs {
				seen[m.ID]++
			}
			return nil
		})
		s, err := Closed(t.Context(), ClosedLoop{Publisher: p, Message: Source{Trial: 1}.Messages(), Senders: 4, Batch: 5, Duration: time.Second + time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		// 4 senders with 5 messages each 0.1 s: eleven rounds begin within 1.001 s.
		if s.Sent != 220 || s.Accepted != 220 || len(seen) != 220 || math.Abs(s.Achieved-200) > 1e-6 || s.Model != "closed" || s.Err != "" {
			t.Errorf("got %+v and %d ids, want 220 at 200/s", s, len(seen))
		}
		for n := range uint64(220) {
			if id := ledger.FormatID(ledger.ID{Trial: 1, Seq: n}); seen[id] != 1 {
				t.Errorf("%s was sent %d times, want once", id, seen[id])
			}
		}
	})
}

func TestAClosedLoopStopsAtItsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		p := fake(func(_ context.Context, msgs []queue.Message) error { sent.Add(int64(len(msgs))); return nil })
		s, err := Closed(t.Context(), ClosedLoop{Publisher: p, Message: Source{}.Messages(), Senders: 3, Batch: 4, Count: 10})
		if err != nil || s.Sent != 10 || sent.Load() != 10 {
			t.Errorf("got %+v, %v, %d sent, want 10", s, err, sent.Load())
		}
	})
}

func TestAWindowHoldsSendersBackToWhatIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var published atomic.Int64
		start := time.Now()
		delivered := func() int64 { return min(published.Load(), int64(time.Since(start)/(10*time.Millisecond))) } // 100/s
		var most int64
		p := fake(func(_ context.Context, msgs []queue.Message) error {
			published.Add(int64(len(msgs)))
			most = max(most, published.Load()-delivered())
			return nil
		})
		l := ClosedLoop{Publisher: p, Message: Source{}.Messages(), Batch: 5, Duration: 10 * time.Second, Window: 20, Delivered: delivered}
		s, err := Closed(t.Context(), l)
		if err != nil || most > 20+4 || s.Sent < 1000 || s.Sent > 1030 {
			t.Errorf("got %+v, %v, at most %d undelivered, want 1,000 or so sent within a window of 20", s, err, most)
		}
	})
}

func TestAWindowDoesNotShutForGoodWhenMessagesAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var published atomic.Int64
		p := fake(func(_ context.Context, msgs []queue.Message) error { published.Add(int64(len(msgs))); return nil })
		// The first 30 are lost, and whatever comes later is delivered at once.
		delivered := func() int64 { return max(0, published.Load()-30) }
		l := ClosedLoop{Publisher: p, Message: Source{}.Messages(), Count: 200, Window: 20, Delivered: delivered, Duration: time.Hour}
		s, err := Closed(t.Context(), l)
		if err != nil || s.Sent != 200 || time.Duration(s.Last-s.First) > 5*time.Second {
			t.Errorf("got %+v, %v, want all 200 within seconds", s, err)
		}
	})
}

func TestARefusedMessageTakesNoRoomInTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusals := 50
		var published int64
		p := fake(func(_ context.Context, msgs []queue.Message) error {
			if refusals--; refusals >= 0 {
				return queue.Reject(errors.New("full"))
			}
			published += int64(len(msgs))
			return nil
		})
		l := ClosedLoop{Publisher: p, Message: Source{}.Messages(), Count: 60, Window: 20, Delivered: func() int64 { return published }, Duration: time.Hour}
		s, err := Closed(t.Context(), l)
		if err != nil || s.Accepted != 10 || time.Duration(s.Last-s.First) > 50*errorPause {
			t.Errorf("got %+v, %v, want 10 accepted and no wait but the pauses", s, err)
		}
	})
}

func TestAClosedLoopPausesWhenItIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("full")
		p := fake(func(context.Context, []queue.Message) error { return queue.Reject(full) })
		s, err := Closed(t.Context(), ClosedLoop{Publisher: p, Message: Source{}.Messages(), Duration: time.Second - time.Millisecond})
		if err != nil || s.Sent != 100 || s.Accepted != 0 || s.Achieved != 0 || s.Err != queue.Reject(full).Error() {
			t.Errorf("got %+v, %v, want 100 refused", s, err)
		}
	})
}

func TestAClosedLoopCutsACallThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		p := fake(func(ctx context.Context, _ []queue.Message) error { <-ctx.Done(); return ctx.Err() })
		s, err := Closed(t.Context(), ClosedLoop{Publisher: p, Message: Source{}.Messages(), Senders: 3, Duration: time.Second, Timeout: 2 * time.Second})
		if took := time.Since(begin); err != nil || s.Sent != 3 || s.Accepted != 0 || took != 3*time.Second {
			t.Errorf("got %+v, %v after %v, want 3 unanswered after 3s", s, err, took)
		}
	})
}

func TestLoopsWithoutTheirPartsAreErrors(t *testing.T) {
	p := fake(func(context.Context, []queue.Message) error { return nil })
	if _, err := Run(t.Context(), Generator{Publisher: p, Message: Source{}.Messages()}); err == nil {
		t.Error("no pacer: got nil, want an error")
	}
	if _, err := Closed(t.Context(), ClosedLoop{Publisher: p}); err == nil {
		t.Error("no messages: got nil, want an error")
	}
	if _, err := Closed(t.Context(), ClosedLoop{Publisher: p, Message: Source{}.Messages(), Window: 1}); err == nil {
		t.Error("a window without a count: got nil, want an error")
	}
}

// On the real clock only what no load on the machine can change is checked:
// nothing is sent before it is due, and everything is sent.
func TestNothingIsSentEarly(t *testing.T) {
	for _, rate := range []float64{100, 2000, 100_000} {
		var mu sync.Mutex
		early := 0
		start := ledger.Now() + int64(10*time.Millisecond)
		pacer := Constant(rate)
		p := fake(func(_ context.Context, msgs []queue.Message) error {
			id, err := ledger.ParseID(msgs[0].ID)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || ledger.Now() < start+int64(pacer.Due(id.Seq)) {
				early++
			}
			return nil
		})
		s, err := Run(t.Context(), Generator{Pacer: pacer, Publisher: p, Message: Source{}.Messages(), Count: 20, Start: start})
		if err != nil || s.Sent != 20 || early != 0 {
			t.Errorf("rate %v: got %d sent, %d early, %v", rate, s.Sent, early, err)
		}
	}
}

func TestWaitUntilEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if err := WaitUntil(ctx, ledger.Now()+int64(time.Hour)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if err := WaitUntil(ctx, ledger.Now()-1); !errors.Is(err, context.Canceled) {
		t.Errorf("past: got %v, want context.Canceled", err)
	}
}

func TestKeysTakeTurns(t *testing.T) {
	s := Source{Trial: 3, Producer: 1, Incarnation: 2, Size: 16, Keys: 3}
	m := s.Messages()(7)
	if m.ID != "3-1-2-7" || m.Key != "k1" || len(m.Body) != 16 {
		t.Errorf("got %+v", m)
	}
	if key := (Source{}).Messages()(7).Key; key != "" {
		t.Errorf("without keys: got %q, want none", key)
	}
}

// BenchmarkLateness reports how late an idle machine sends, in µs.
func BenchmarkLateness(b *testing.B) {
	for _, rate := range []float64{1000, 10_000, 50_000} {
		b.Run(time.Duration(float64(time.Second)/rate).String(), func(b *testing.B) {
			p := fake(func(context.Context, []queue.Message) error { return nil })
			s, err := Run(context.Background(), Generator{Pacer: Constant(rate), Publisher: p, Message: Source{}.Messages(), Count: uint64(b.N)})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(s.P99Lateness)/1e3, "p99-µs")
			b.ReportMetric(float64(s.MaxLateness)/1e3, "max-µs")
		})
	}
}
