package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/app/worker"
	"queuelab/queue"
)

func (l *lab) sweep() *worker.Sweep {
	return &worker.Sweep{Store: l.store, Gate: l.gate, Results: sale.NewResults(l.store, func(error) {}), Log: slog.New(slog.DiscardHandler),
		Outbox: &sale.Outbox{Publisher: l.pub, Timeout: time.Second, Observer: sale.Unobserved{}}, Again: 50 * time.Millisecond}
}

// swept sweeps until there is nothing left to look after.
func (l *lab) swept(s *worker.Sweep) {
	l.t.Helper()
	l.eventually("nothing is due", func() bool {
		if _, err := s.Once(context.Background()); err != nil {
			l.t.Fatal(err)
		}
		d, err := l.store.Due(context.Background())
		return err == nil && d.Unpaid > time.Minute && d.GiveBack == store.Never && d.Replay == store.Never
	})
}

// toPay makes a voucher whose orders are to be paid in time.
func (l *lab) toPay(stock int64, within time.Duration) sale.Voucher {
	l.t.Helper()
	now := time.Now().UTC()
	v := sale.Voucher{ID: id(), Title: "tea", Stock: stock, Left: stock, Begin: now.Add(-time.Hour), End: now.Add(time.Hour), Created: now,
		PerUser: 1, PayWithin: within}
	if err := l.store.CreateVoucher(l.t.Context(), v); err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.gate.Load(l.t.Context(), v); err != nil {
		l.t.Fatal(err)
	}
	return v
}

func (l *lab) fulfil(rs ...sale.Reservation) {
	l.t.Helper()
	if _, err := l.store.Fulfil(l.t.Context(), rs); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) closeOrder(r sale.Reservation) {
	l.t.Helper()
	if _, closed, err := l.store.CloseOrder(l.t.Context(), r.OrderID, sale.Cancelled, sale.ReasonByBuyer); err != nil || !closed {
		l.t.Fatalf("got %v, %v, want the order closed", closed, err)
	}
}

func (l *lab) settle(rs ...sale.Reservation) {
	l.t.Helper()
	if err := l.gate.Settle(l.t.Context(), rs...); err != nil {
		l.t.Fatal(err)
	}
}

func TestAnUnpaidOrderExpiresPromptlyAndItsBuyerMayBuyAgain(t *testing.T) {
	l := newLab(t)
	v := l.toPay(2, 1200*time.Millisecond)
	s := l.sweep()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	l.work()
	r := l.admit(v, "u")
	l.send(r)
	l.eventually("the order expires", func() bool {
		os, err := l.store.Orders(context.Background(), r.OrderID)
		return err == nil && len(os) == 1 && os[0].Status == sale.Cancelled
	})
	os, err := l.store.Orders(t.Context(), r.OrderID)
	if err != nil || os[0].Closed.Before(os[0].PayBy) {
		t.Errorf("got %+v, %v, want it cancelled after its time to pay", os, err)
	}
	t.Logf("cancelled %v after its time to pay", os[0].Closed.Sub(os[0].PayBy))
	l.eventually("the gate has the unit again", func() bool { left, _, _ := l.gate.Left(context.Background(), v.ID); return left == 2 })
	cancel() // the next one has as little time to pay
	wg.Wait()
	again := l.admit(v, "u")
	l.send(again)
	l.drained()
	l.wantOrder(again, sale.Confirmed, "")
	l.wantGate(v, 1)
}

// The service died after the order was closed and before the gate was told, or
// after the gate was told and before that was noted.
func TestAUnitComesBackAtTheGateOnceWhateverDies(t *testing.T) {
	l := newLab(t)
	v := l.toPay(5, 0)
	a, b := l.admit(v, "a"), l.admit(v, "b")
	l.fulfil(a, b)
	l.settle(a, b)
	l.closeOrder(a)
	l.closeOrder(b)
	if ok, err := l.gate.Release(t.Context(), b); err != nil || !ok {
		t.Fatalf("got %v, %v, want b's unit released", ok, err)
	}
	l.swept(l.sweep())
	l.wantGate(v, 5)
	c := l.admit(v, "a")
	l.swept(l.sweep())
	l.wantGate(v, 4, c)
}

func TestAGateThatIsAwayGetsTheUnitLater(t *testing.T) {
	l := newLab(t)
	v := l.toPay(5, 0)
	a := l.admit(v, "a")
	l.fulfil(a)
	l.settle(a)
	l.closeOrder(a)
	s := l.sweep()
	away := &awayGate{Gate: l.gate}
	s.Gate = away
	away.down.Store(true)
	if _, err := s.Once(t.Context()); err == nil {
		t.Error("got no error, want the gate's")
	}
	away.down.Store(false)
	l.swept(s)
	l.wantGate(v, 5)
}

type awayGate struct {
	sale.Gate
	down atomic.Bool
}

func (g *awayGate) Release(ctx context.Context, r sale.Reservation) (bool, error) {
	if g.down.Load() {
		return false, errors.New("the gate is away")
	}
	return g.Gate.Release(ctx, r)
}

// A worker read that the order is confirmed, was held up, and tells the gate when
// the order is closed and its unit given back.
func TestALateSettleOfAClosedOrderKeepsNoUnit(t *testing.T) {
	for _, c := range []struct {
		name string
		next string // what the buyer has by then
		left int64
		// atOnce: who closed the order gave the unit back himself.
		atOnce bool
	}{
		{"the buyer has nothing else", "", 5, false},
		{"the buyer has another confirmed order", "confirmed", 4, false},
		{"the buyer has another order in the queue", "queued", 4, false},
		{"the unit was given back at once", "", 5, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			v := l.toPay(5, 0)
			a := l.admit(v, "u")
			l.fulfil(a)
			l.closeOrder(a)
			s := l.sweep()
			if c.atOnce {
				if ok, err := l.gate.Release(t.Context(), a); err != nil || !ok {
					t.Fatal(ok, err)
				}
				s.Again = time.Hour // the first look comes before that
			}
			if _, err := s.Once(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s.Again = 50 * time.Millisecond; c.atOnce {
				if err := l.store.GiveBackSoon(t.Context(), a.OrderID); err != nil {
					t.Fatal(err)
				}
			}
			l.wantGate(v, 5)
			var next sale.Reservation
			if c.next != "" {
				next = l.admit(v, "u")
			}
			if c.next == "confirmed" {
				l.fulfil(next)
				l.settle(next)
			}
			l.settle(a)
			l.swept(s)
			if c.next == "queued" {
				l.send(next)
				l.work()
				l.drained()
			}
			l.wantGate(v, c.left)
			if next.OrderID != 0 {
				l.wantOrder(next, sale.Confirmed, "")
				if got, holder, err := l.gate.Admit(t.Context(), sale.Reservation{OrderID: id(), VoucherID: v.ID, UserID: "u"}); err != nil || got != sale.AlreadyBought || holder != next.OrderID {
					t.Errorf("got %v, %v, %v, want the gate to know order %v", got, holder, err, next.OrderID)
				}
			}
		})
	}
}

// The order is closed while the worker that committed it waits for the gate, for
// longer than the sweep looks after it.
func TestAWorkerThatWasFrozenLooksAgain(t *testing.T) {
	l := newLab(t)
	v := l.toPay(5, 0)
	a := l.admit(v, "u")
	l.fulfil(a)
	os, err := l.store.Orders(t.Context(), a.OrderID)
	if err != nil {
		t.Fatal(err)
	}
	l.closeOrder(a)
	l.swept(l.sweep())
	if err := worker.Reconcile(t.Context(), l.gate, l.store, os, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	l.wantGate(v, 5)
}

// Two instances sweep at the same time; the gate counts.
func TestInstancesShareTheSweep(t *testing.T) {
	l := newLab(t)
	const n = 300
	v := l.toPay(n, time.Millisecond)
	var rs []sale.Reservation
	for i := range n {
		rs = append(rs, l.admit(v, fmt.Sprint("u", i)))
	}
	l.fulfil(rs...)
	l.settle(rs...)
	gate := &countingGate{Gate: l.gate}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	for range 3 {
		s := l.sweep()
		s.Gate, s.Again = gate, time.Hour
		wg.Go(func() { s.Run(ctx) })
	}
	l.eventually("every unit is back", func() bool { left, _, _ := l.gate.Left(context.Background(), v.ID); return left == n })
	cancel()
	wg.Wait()
	if got := gate.released.Load(); got != n {
		t.Errorf("got %d releases, want one for each of %d", got, n)
	}
}

type countingGate struct {
	sale.Gate
	released atomic.Int64
}

func (g *countingGate) Release(ctx context.Context, r sale.Reservation) (bool, error) {
	g.released.Add(1)
	return g.Gate.Release(ctx, r)
}

// The service died after the operator's wish was written down.
func TestAReplayWithoutAnAnswerIsPublished(t *testing.T) {
	l := newLab(t)
	v := l.voucher(5, 5)
	r := l.admit(v, "u")
	if err := l.store.DeadLetter(t.Context(), r.OrderID.String(), r.Encode(), "why"); err != nil {
		t.Fatal(err)
	}
	if ok, err := l.store.StartReplay(t.Context(), r.OrderID.String(), "op"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	s := l.sweep()
	s.Store = hurried{l.store}
	l.work()
	if _, err := s.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.drained()
	l.wantOrder(r, sale.Confirmed, "")
	if got, err := l.store.Letter(t.Context(), r.OrderID.String()); err != nil || got.State != sale.Replayed {
		t.Errorf("got %+v, %v, want it replayed", got, err)
	}
}

// hurried is a store whose replays are due as soon as they begin.
type hurried struct{ *faulty }

func (h hurried) Due(ctx context.Context) (store.Due, error) {
	d, err := h.faulty.Due(ctx)
	d.Replay = 0
	return d, err
}

func (h hurried) ToReplay(ctx context.Context, limit int) ([]sale.DeadLetter, error) {
	return h.ListLetters(ctx, sale.Replaying, "", limit)
}

func TestARejectedReplayStaysDue(t *testing.T) {
	l := newLab(t)
	if err := l.store.DeadLetter(t.Context(), "m", []byte("{"), "why"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.store.StartReplay(t.Context(), "m", "op"); err != nil {
		t.Fatal(err)
	}
	s := l.sweep()
	s.Store = hurried{l.store}
	if err := l.pub.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Once(t.Context()); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("got %v, want the queue's error", err)
	}
	if got, err := l.store.Letter(t.Context(), "m"); err != nil || got.State != sale.Replaying {
		t.Errorf("got %+v, %v, want it still to be published", got, err)
	}
}
