package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"queuelab/app/sale"
	"queuelab/app/worker"
	"queuelab/queue"
)

func (l *lab) rescan(vs ...sale.Voucher) *worker.Rescan {
	return &worker.Rescan{Gate: l.gate, Store: l.store, Age: time.Millisecond, Log: slog.New(slog.DiscardHandler),
		Results: sale.NewResults(l.store, func(error) {}),
		Outbox:  &sale.Outbox{Publisher: l.pub, Timeout: time.Second, Observer: sale.Unobserved{}},
		Vouchers: func(context.Context, time.Time) ([]sale.ID, error) {
			ids := make([]sale.ID, len(vs))
			for i, v := range vs {
				ids[i] = v.ID
			}
			return ids, nil
		}}
}

func (l *lab) backlog() int64 {
	l.t.Helper()
	b, err := l.queue.(queue.Backlogger).Backlog(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	return b.Ready + b.InFlight
}

// The service died after the gate had admitted and before it published.
func TestOrdersThatWereNeverPublishedAreFoundAndDecided(t *testing.T) {
	l := newLab(t)
	v, w := l.voucher(600, 600), l.voucher(5, 5)
	var rs []sale.Reservation
	for i := range 600 {
		rs = append(rs, l.admit(v, fmt.Sprint("u", i)))
	}
	rs = append(rs, l.admit(w, "u"))
	l.work()
	s := l.rescan(v, w)
	l.eventually("every order is decided", func() bool {
		if err := s.Once(context.Background()); err != nil {
			t.Fatal(err)
		}
		return l.seen.count() == len(rs)
	})
	l.drained()
	for _, r := range rs {
		l.wantOrder(r, sale.Confirmed, "")
	}
	l.wantGate(v, 0)
	l.wantGate(w, 4)
}

// scraps is a gate that holds, beside its orders, a mark that nobody can read.
type scraps struct{ sale.Gate }

func (g scraps) Stale(ctx context.Context, v sale.ID, age time.Duration, limit int) ([]sale.Reservation, error) {
	rs, err := g.Gate.Stale(ctx, v, age, limit)
	return rs, errors.Join(err, fmt.Errorf("%w: mark of voucher %s", sale.ErrUnreadable, v))
}

func TestAMarkThatNobodyCanReadHoldsNoOtherOrderUp(t *testing.T) {
	l := newLab(t)
	v, w := l.voucher(5, 5), l.voucher(5, 5)
	rs := []sale.Reservation{l.admit(v, "u"), l.admit(w, "u")}
	l.work()
	s := l.rescan(v, w)
	s.Gate = scraps{l.gate}
	l.eventually("every order is decided", func() bool {
		if err := s.Once(context.Background()); err != nil {
			t.Fatal(err)
		}
		return l.seen.count() == len(rs)
	})
}

// The worker died, or Redis was away, between the commit and the gate.
func TestMarksOfDecidedOrdersAreClearedWithoutPublishing(t *testing.T) {
	l := newLab(t)
	v := l.voucher(5, 1)
	a, b := l.admit(v, "a"), l.admit(v, "b")
	if _, err := l.store.Fulfil(t.Context(), []sale.Reservation{a, b}); err != nil {
		t.Fatal(err)
	}
	s := l.rescan(v)
	l.eventually("the failed one is given back", func() bool {
		if err := s.Once(context.Background()); err != nil {
			t.Fatal(err)
		}
		left, _, _ := l.gate.Left(context.Background(), v.ID)
		return left == 4
	})
	for range 3 {
		if err := s.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	l.wantGate(v, 4)
	if n := l.backlog(); n != 0 {
		t.Errorf("got %d messages, want none", n)
	}
}

func TestARescanThatCannotPublishKeepsTheMark(t *testing.T) {
	l := newLab(t)
	v := l.voucher(5, 5)
	r := l.admit(v, "u")
	if err := l.pub.Close(); err != nil {
		t.Fatal(err)
	}
	s := l.rescan(v)
	l.eventually("the rescan says so", func() bool { return s.Once(context.Background()) != nil })
	l.wantGate(v, 4, r)
}
