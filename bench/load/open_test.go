package load

import (
	"context"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"queuelab/bench/ledger"
	"queuelab/queue"
)

func TestAFlashSaleIsSentAsItIsPlanned(t *testing.T) {
	shape := mustParse(t, "spike:silence=2s,wall=5000/200ms,tail=100", 0)
	synctest.Test(t, func(t *testing.T) {
		start := ledger.Now()
		var inWall, before atomic.Int64
		p := fake(func(context.Context, []queue.Message) error {
			switch at := time.Duration(ledger.Now() - start); {
			case at < 2*time.Second:
				before.Add(1)
			case at < 2200*time.Millisecond:
				inWall.Add(1)
			}
			time.Sleep(300 * time.Millisecond) // the whole wall is in flight at once
			return nil
		})
		s, err := Run(t.Context(), Generator{Pacer: shape, Publisher: p, Message: Source{}.Messages(), Count: 5100, MaxInFlight: 8192, wait: fakeClockWait})
		if err != nil || before.Load() != 0 || inWall.Load() != 5000 || s.Sent != 5100 || s.MaxLateness != 0 {
			t.Errorf("got %d too early, %d in the wall, %+v, %v", before.Load(), inWall.Load(), s, err)
		}
		if held, reason := s.Held(); !held || s.Due != 5100 || s.Planned != s.Took || s.Planned != shape.Due(5099)-shape.Due(0) {
			t.Errorf("got held %t (%s), %+v", held, reason, s)
		}
	})
}

// The mean over a spike says little: a wall that takes three seconds instead of
// 0.2 is made up for in a tail of a minute.
func TestAWallThatIsNotHeldIsSeenPastALongTail(t *testing.T) {
	shape := mustParse(t, "spike:silence=2s,wall=5000/200ms,tail=100", 0)
	synctest.Test(t, func(t *testing.T) {
		p := fake(func(context.Context, []queue.Message) error { time.Sleep(10 * time.Millisecond); return nil })
		s, err := Run(t.Context(), Generator{Pacer: shape, Publisher: p, Message: Source{}.Messages(), Count: 11_000, MaxInFlight: 16, wait: fakeClockWait})
		if err != nil || s.Sent != 11_000 || s.Achieved < leastHeld*s.Offered {
			t.Fatalf("got %+v, %v, want all sent by the end", s, err)
		}
		if held, reason := s.Held(); held || !strings.Contains(reason, "late") {
			t.Errorf("got held %t, %q, want lateness", held, reason)
		}
	})
}

func TestAPlanThatWasNotHeldSaysWhatItAchieved(t *testing.T) {
	const slow, stuck = 100 * time.Millisecond, time.Hour
	for _, c := range []struct {
		name   string
		shape  string
		answer time.Duration
		count  uint64
		until  time.Duration
		want   string // of the reason; "": held
	}{
		{"a queue that keeps up", "constant:100", 0, 1000, 0, ""},
		{"one that keeps up with a ramp", "ramp:1-100/10s", 10 * time.Millisecond, 800, 0, ""},
		{"one that takes half", "constant:100", slow, 1000, 0, "offered 100/s, sent 50/s: what was due within 9.99s took 19."},
		{"one that takes half until the end", "constant:100", slow, 0, 10 * time.Second, "offered 100/s, sent 50/s: "},
		{"one that takes nothing more", "constant:100", stuck, 0, 10 * time.Second, "offered 100/s, sent 0/s: 994 of the 999 messages that were due were not sent"},
		{"a ramp that outgrows it", "ramp:1-99/10s", slow, 0, 10 * time.Second, "offered 50/s, sent 38/s"},
		{"a silence to the end", "spike:silence=1m,wall=1/1s,tail=1", 0, 0, time.Second, "no message was due"},
		{"an end between two messages", "constant:1", 0, 0, 2500 * time.Millisecond, ""},
		{"an end just as one is due", "constant:1", 0, 0, 2 * time.Second, ""},
		{"one message", "constant:1", 0, 1, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if c.until > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.until)
					defer cancel()
				}
				p := fake(func(ctx context.Context, _ []queue.Message) error {
					select {
					case <-time.After(c.answer):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				s, err := Run(ctx, Generator{Pacer: mustParse(t, c.shape, 0), Publisher: p, Message: Source{}.Messages(), Count: c.count, MaxInFlight: 5,
					Timeout: time.Minute, wait: fakeClockWait})
				if err != nil {
					t.Fatal(err)
				}
				held, reason := s.Held()
				if held != (c.want == "") || !strings.Contains(reason, c.want) {
					t.Errorf("got held %t, %q, want %q; %+v", held, reason, c.want, s)
				}
			})
		})
	}
	if held, reason := (Stats{Model: "closed"}).Held(); !held || reason != "" {
		t.Errorf("a closed loop: got held %t, %q", held, reason)
	}
}

func TestABatchIsNotMissingBeforeItIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1950*time.Millisecond)
		defer cancel()
		p := fake(func(context.Context, []queue.Message) error { return nil })
		s, err := Run(ctx, Generator{Pacer: Constant(10), Publisher: p, Message: Source{}.Messages(), Batch: 16, wait: fakeClockWait})
		if held, reason := s.Held(); err != nil || !held || s.Sent != 16 || s.Due != 16 {
			t.Errorf("got %+v, %v, %s, want one batch of 16, held", s, err, reason)
		}
	})
}

func TestSendersAreReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := 0
		p := fake(func(context.Context, []queue.Message) error {
			most = max(most, runtime.NumGoroutine())
			time.Sleep(time.Millisecond)
			return nil
		})
		before := runtime.NumGoroutine()
		s, err := Run(t.Context(), Generator{Pacer: Constant(100), Publisher: p, Message: Source{}.Messages(), Count: 1000, wait: fakeClockWait})
		if err != nil || s.Sent != 1000 || most > before+3 {
			t.Errorf("got %d goroutines, %+v, %v, want the one sender that is ever busy", most-before, s, err)
		}
	})
}

func TestAllThatIsDueAtOnceIsSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fake(func(context.Context, []queue.Message) error { time.Sleep(time.Second); return nil })
		s, err := Run(t.Context(), Generator{Pacer: Constant(math.Inf(1)), Publisher: p, Message: Source{}.Messages(), Count: 500, wait: fakeClockWait})
		if held, reason := s.Held(); err != nil || !held || s.MaxLateness != 0 || s.Sent != 500 || s.Offered != 0 {
			t.Errorf("got %+v, %v, %s, want 500 on time", s, err, reason)
		}
	})
}

// Where the plan is behind there is always one more call than senders: that
// must not start thousands of them.
func TestAPlanThatIsBehindStartsNoMoreSendersThanCanRun(t *testing.T) {
	var most atomic.Int64
	p := fake(func(context.Context, []queue.Message) error {
		most.Store(max(most.Load(), int64(runtime.NumGoroutine())))
		return nil
	})
	before := int64(runtime.NumGoroutine())
	s, err := Run(t.Context(), Generator{Pacer: Constant(MaxRate), Publisher: p, Message: Source{}.Messages(), Count: 20_000, MaxInFlight: 20_000})
	if err != nil || s.Sent != 20_000 || s.Accepted != 20_000 || most.Load()-before > 2000 {
		t.Errorf("got %d goroutines, %+v, %v, want all sent by a few", most.Load()-before, s, err)
	}
}

// A sender's calls share a context, which must not shorten the time-out of any
// by more than the documentation says, nor be used up.
func TestEachCallHasItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 10 * time.Second
		var mu sync.Mutex
		shortest, longest, ended := time.Hour, time.Duration(0), 0
		p := fake(func(ctx context.Context, _ []queue.Message) error {
			deadline, ok := ctx.Deadline()
			mu.Lock()
			defer mu.Unlock()
			if left := time.Until(deadline); ok {
				shortest, longest = min(shortest, left), max(longest, left)
			}
			if ctx.Err() != nil {
				ended++
			}
			return nil
		})
		s, err := Run(t.Context(), Generator{Pacer: Constant(100), Publisher: p, Message: Source{}.Messages(), Count: 10_000, Timeout: timeout, wait: fakeClockWait})
		if err != nil || s.Accepted != 10_000 || ended > 0 || shortest < timeout*98/100 || longest > timeout {
			t.Errorf("got %+v, %v, time-outs from %v to %v, %d ended before they began", s, err, shortest, longest, ended)
		}
	})
}

// Whoever records slowly is waited for by senders, never by the schedule.
func TestASlowRecorderMakesNothingLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := make(chan struct{}, 1)
		p := fake(func(context.Context, []queue.Message) error {
			recorder <- struct{}{}
			defer func() { <-recorder }()
			time.Sleep(20 * time.Millisecond) // one record at a time, at half the rate
			return nil
		})
		s, err := Run(t.Context(), Generator{Pacer: Constant(100), Publisher: p, Message: Source{}.Messages(), Count: 500, wait: fakeClockWait})
		if err != nil || s.MaxLateness != 0 || s.Sent != 500 {
			t.Errorf("got %+v, %v, want nothing late", s, err)
		}
	})
}
