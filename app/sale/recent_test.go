package sale_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/app/admission"
	"queuelab/app/sale"
)

// frozen is a database that can stop to answer.
type frozen struct {
	*rows
	stopped atomic.Bool
	asked   atomic.Int64
	takes   time.Duration // each query
	err     error
}

func (f *frozen) VouchersBelow(ctx context.Context, endAfter time.Time, below sale.ID, most int) ([]sale.Voucher, error) {
	f.asked.Add(1)
	time.Sleep(f.takes)
	if f.stopped.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if f.err != nil {
		return nil, f.err
	}
	return f.rows.VouchersBelow(ctx, endAfter, below, most)
}

func newFrozen() (*frozen, *sale.Loader) {
	f := &frozen{rows: &rows{vouchers: map[sale.ID]sale.Voucher{7: {ID: 7, End: time.Now().Add(time.Hour)}}}}
	return f, sale.NewLoader(nil, f, nil, 0, slog.New(slog.DiscardHandler))
}

func TestAFrozenDatabaseHoldsUpNobodyLongerThanHeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, l := newFrozen()
		ids, err := l.Recent(t.Context(), time.Now())
		if d := cmp.Diff([]sale.ID{7}, ids); d != "" || err != nil {
			t.Fatalf("got %v, want the voucher (-want +got):\n%s", err, d)
		}
		known := time.Now()
		time.Sleep(time.Millisecond)
		f.stopped.Store(true)
		var wg sync.WaitGroup
		waits := func(most time.Duration, want error) {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), most)
				defer cancel()
				began := time.Now()
				if _, err := l.Recent(ctx, time.Now()); !errors.Is(err, want) || time.Since(began) > most {
					t.Errorf("got %v after %v, want %v within %v", err, time.Since(began), want, most)
				}
			})
		}
		for range 3 {
			waits(time.Second, context.DeadlineExceeded)
		}
		waits(time.Hour, context.DeadlineExceeded) // that of the query, which has one of its own
		synctest.Wait()
		// While they wait: the list that is known, and a click on a voucher that is to
		// be loaded, cost nothing.
		began := time.Now()
		if ids, err := l.Recent(t.Context(), known); err != nil || len(ids) != 1 {
			t.Errorf("got %v, %v, want the list that is known", ids, err)
		}
		l.Want(sale.Voucher{ID: 8})
		if waited := time.Since(began); waited != 0 {
			t.Errorf("got %v to wait, want none", waited)
		}
		wg.Wait()
		if got := f.asked.Load(); got != 2 {
			t.Errorf("got %d queries, want one of before and one that all share", got)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("got an end after %v, want the query to have an end of its own", took)
		}
		f.stopped.Store(false)
		if ids, err := l.Recent(t.Context(), time.Now()); err != nil || len(ids) != 1 {
			t.Errorf("got %v, %v, want an answer once the database has one", ids, err)
		}
	})
}

func TestAListIsAsNewAsItIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, l := newFrozen()
		f.takes = time.Second
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { _, _ = l.Recent(t.Context(), time.Now()) })
		time.Sleep(100 * time.Millisecond)
		asOf := time.Now() // after that query began
		if _, err := l.Recent(t.Context(), asOf); err != nil || f.asked.Load() != 2 {
			t.Errorf("got %d queries, %v, want a second one, as the first began too early", f.asked.Load(), err)
		}
		if _, err := l.Recent(t.Context(), asOf); err != nil || f.asked.Load() != 2 {
			t.Errorf("got %d queries, %v, want the last list to do", f.asked.Load(), err)
		}
	})
}

func TestAQueryThatFailsFailsForAllWhoShareIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, l := newFrozen()
		f.takes, f.err = time.Second, errors.New("it is away")
		errs := make(chan error, 3)
		for range cap(errs) {
			go func() { _, err := l.Recent(t.Context(), time.Now()); errs <- err }()
		}
		for range cap(errs) {
			if err := <-errs; !errors.Is(err, f.err) {
				t.Errorf("got %v, want %v", err, f.err)
			}
		}
		if got := f.asked.Load(); got != 1 {
			t.Errorf("got %d queries, want one", got)
		}
	})
}

// A gate without keys, and a database that stops in the middle of a load.
func TestALoadThatGetsNoAnswerDoesNotKeepTheNextOnesWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &held{rows: &rows{vouchers: map[sale.ID]sale.Voucher{}}}
		g := &fakeGate{Memory: admission.NewMemory(nil)}
		l := sale.NewLoader(g, f, nil, 0, slog.New(slog.DiscardHandler))
		for id := sale.ID(1); id <= 2; id++ {
			f.vouchers[id] = sale.Voucher{ID: id, Title: fmt.Sprint(id), Stock: 5, Left: 5, End: time.Now().Add(time.Hour)}
			l.Want(f.vouchers[id])
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { l.Run(ctx) })
		time.Sleep(time.Minute)
		cancel()
		wg.Wait()
		if _, ok, err := g.Left(t.Context(), 2); err != nil || !ok {
			t.Errorf("got %v, %v, want the second voucher loaded although the first one's buyers were never read", ok, err)
		}
	})
}

// held is a database that never tells the buyers of voucher 1.
type held struct{ *rows }

func (h *held) HeldOrders(ctx context.Context, voucher, after sale.ID, most int) ([]sale.Order, error) {
	if voucher == 1 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.rows.HeldOrders(ctx, voucher, after, most)
}

func (h *held) VouchersBelow(context.Context, time.Time, sale.ID, int) ([]sale.Voucher, error) {
	return nil, nil
}
