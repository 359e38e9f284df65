package peers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"queuelab/queue"
)

// fake is a publisher that does what a test wants.
type fake func(ctx context.Context, msgs []queue.Message) error

func (f fake) Publish(ctx context.Context, msgs ...queue.Message) error { return f(ctx, msgs) }
func (f fake) Close() error                                             { return nil }

// slow takes as long for each of its first calls as for many later ones.
func slow(first time.Duration, calls int64, later time.Duration) (fake, *atomic.Int64) {
	var n, sent atomic.Int64
	return func(_ context.Context, msgs []queue.Message) error {
		if n.Add(1) <= calls {
			time.Sleep(first)
		} else {
			time.Sleep(later)
		}
		sent.Add(int64(len(msgs)))
		return nil
	}, &sent
}

func TestARateIsThatAfterTheWarmUp(t *testing.T) {
	for name, c := range map[string]struct {
		orders orders
		want   float64
		sent   int64
	}{
		// Each call has 10 messages: the first 10 calls take a second, the others a millisecond.
		"by count":                   {orders{Callers: 1, Batch: 10, Count: 1100, Warm: 100}, 10_000, 1100},
		"by count, without warm-up":  {orders{Callers: 1, Batch: 10, Count: 1100}, 1100 / 10.1, 1100},
		"by time":                    {orders{Callers: 1, Batch: 10, WarmFor: 10*time.Second + time.Millisecond/2, For: time.Second}, 10_000, 10_110},
		"of several callers":         {orders{Callers: 10, Batch: 10, Count: 10_100, Warm: 100}, 100_000, 10_100},
		"with a last batch cut down": {orders{Callers: 1, Batch: 10, Count: 105, Warm: 100}, 5000, 105},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, sent := slow(time.Second, 10, time.Millisecond)
				m := &clock{warm: c.orders.Warm}
				if err := c.orders.feed(t.Context(), p, m); err != nil {
					t.Fatal(err)
				}
				got, err := m.rate()
				if err != nil || got < c.want*.99 || got > c.want*1.01 {
					t.Errorf("got %v, %v, want %v", got, err, c.want)
				}
				if n := sent.Load(); n != c.sent {
					t.Errorf("got %d messages sent, want %d", n, c.sent)
				}
			})
		})
	}
}

func TestARefusalEndsAMeasurement(t *testing.T) {
	full := errors.New("full")
	var calls atomic.Int64
	p := fake(func(context.Context, []queue.Message) error {
		if calls.Add(1) == 3 {
			return queue.Reject(full)
		}
		return nil
	})
	err := orders{Callers: 1, Batch: 1, Count: 1_000_000}.feed(t.Context(), p, &clock{})
	if !errors.Is(err, full) || calls.Load() != 3 {
		t.Errorf("got %v after %d calls, want the refusal after 3", err, calls.Load())
	}
}

func TestARunThatWarmUpOutlastedHasNoRate(t *testing.T) {
	m := &clock{warm: 100}
	m.add(50)
	if rate, err := m.rate(); err == nil {
		t.Errorf("got a rate of %v, want an error", rate)
	}
}

func TestMessagesHaveIDsOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	p := fake(func(_ context.Context, msgs []queue.Message) error {
		for _, m := range msgs {
			if seen[m.ID] || len(m.Body) != payload {
				t.Errorf("got id %q again, or a body of %d bytes, want new ids and %d bytes", m.ID, len(m.Body), payload)
			}
			seen[m.ID] = true
		}
		return nil
	})
	if err := (orders{Callers: 1, Batch: 7, Count: 1000}).feed(t.Context(), p, &clock{}); err != nil || len(seen) != 1000 {
		t.Errorf("got %d ids, %v, want 1000", len(seen), err)
	}
}

func TestWhatIsDoneBehindIsDoneWhenSettled(t *testing.T) {
	gate := make(chan struct{})
	var calls [][]int
	put, settled := behind(func(ns []int) error {
		<-gate
		calls = append(calls, ns)
		return nil
	})
	for i := range 10 {
		if err := put([]int{i}); err != nil {
			t.Fatal(err)
		}
	}
	close(gate)
	if err := settled(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range calls {
		for _, v := range c {
			if v != n {
				t.Errorf("got %v, want every number once and in order", calls)
			}
			n++
		}
	}
	if n != 10 || len(calls) > 3 {
		t.Errorf("got %v, want 10 numbers in few calls: what waits goes at once", calls)
	}
}

func TestAFailureBehindIsTold(t *testing.T) {
	broken := errors.New("broken")
	put, settled := behind(func([]int) error { return broken })
	for range 1000 { // never blocks, though nothing succeeds
		_ = put([]int{1})
	}
	if err := settled(); !errors.Is(err, broken) {
		t.Errorf("got %v, want the failure", err)
	}
	if err := settled(); !errors.Is(err, broken) {
		t.Errorf("a second time: got %v, want the failure", err)
	}
}

// fakeLine is a queue in memory whose messages take a known time.
func fakeLine(delay time.Duration) *line {
	type held struct {
		body []byte
		at   time.Time
	}
	messages := make(chan held, 10_000)
	return &line{
		publish: func(_ context.Context, m queue.Message) error {
			messages <- held{m.Body, time.Now().Add(delay)}
			return nil
		},
		receive: func(ctx context.Context, seen func([]byte)) error {
			select {
			case m := <-messages:
				time.Sleep(time.Until(m.at))
				seen(m.body)
				seen(m.body) // a second delivery is not a second message
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		settled: nothingUnderWay, close: func() {},
	}
}

func TestLatencyIsFromDueToReceived(t *testing.T) {
	o := orders{Count: 300, Warm: 100, Rate: latencyRate}
	r, err := o.measureLine(t.Context(), fakeLine(3*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	// A busy machine may add to it, and nothing may take from it.
	if l := r.Latency; l.N != 200 || l.P50 < 3000 || l.P99 < l.P50 || l.Max < l.P99 {
		t.Errorf("got %+v, want 200 latencies of at least 3000", l)
	}
}

func TestALostMessageIsNoLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stamps{want: 2, probes: make(chan struct{}, probes), all: make(chan struct{})}
		for n := int64(-probes); n < 1; n++ {
			s.seen(s.message(n, 0).Body)
			s.seen(s.message(n, 0).Body) // twice is not two
		}
		err := await(t.Context(), s.all, nil, "the last messages")
		if err == nil || !strings.Contains(err.Error(), "did not come within") {
			t.Errorf("got %v with one of two messages, want an error", err)
		}
	})
}

func TestPercentilesAreThoseOfTheSample(t *testing.T) {
	for n, want := range map[int]Micros{
		1:   {1, 1, 1, 1},
		2:   {1, 2, 2, 2},
		101: {51, 100, 101, 101},
		200: {100, 198, 200, 200},
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := &stamps{}
			for i := n; i > 0; i-- {
				s.micro = append(s.micro, float64(i))
			}
			if got := s.micros(); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
