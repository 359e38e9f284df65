package sale_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"queuelab/app/admission"
	"queuelab/app/sale"
)

// searched is a gate that counts its vouchers looked at, and takes its time where
// it is asked about all of them.
type searched struct {
	*admission.Memory
	one, all atomic.Int64
	takes    time.Duration
}

func (g *searched) Find(ctx context.Context, order sale.ID, vouchers ...sale.ID) (sale.Reservation, bool, error) {
	g.one.Add(int64(len(vouchers)))
	return g.Memory.Find(ctx, order, vouchers...)
}

func (g *searched) FindAll(ctx context.Context, orders []sale.ID, vouchers ...sale.ID) (map[sale.ID]sale.Reservation, error) {
	time.Sleep(g.takes)
	found, err := g.Memory.FindAll(ctx, orders, vouchers...) // it uses Memory's own Find
	g.all.Add(1)
	return found, err
}

const many = 1005

// manyVouchers is a shop whose voucher is older than many others.
func manyVouchers(t *testing.T) (*shop, *searched) {
	t.Helper()
	s := newShop(t, &fakePublisher{})
	g := &searched{Memory: s.gate.Memory}
	s.Gate = g
	now := time.Now()
	for i := range sale.ID(many) {
		s.store.vouchers[s.v.ID+1+i] = sale.Voucher{ID: s.v.ID + 1 + i, Stock: 1, Begin: now, End: now.Add(time.Hour)}
	}
	return s, g
}

// elsewhere has another instance admit a buyer.
func (s *shop) elsewhere(t *testing.T, order sale.ID, user string) {
	t.Helper()
	v, _, err := s.Gate.Admit(t.Context(), sale.Reservation{OrderID: order, VoucherID: s.v.ID, UserID: user})
	if err != nil || v != sale.Admitted {
		t.Fatalf("got %v, %v, want admitted", v, err)
	}
}

func (s *shop) wantQueued(t *testing.T, order sale.ID, user string) {
	t.Helper()
	o, err := s.Order(t.Context(), sale.Reader{User: user}, order, 0)
	if err != nil || o.Status != sale.Queued || o.VoucherID != s.v.ID {
		t.Errorf("got %+v, %v, want it queued", o, err)
	}
}

func TestAnOrderIsFoundHoweverManyVouchersAreNewer(t *testing.T) {
	s, g := manyVouchers(t)
	s.Board = sale.NewBoard(g)
	ids, err := s.Loader.Recent(t.Context(), time.Now())
	if err != nil || len(ids) != many+1 || ids[many] != s.v.ID {
		t.Fatalf("got %d vouchers of late, %v, want %d and the oldest last", len(ids), err, many+1)
	}
	s.elsewhere(t, 77, "u")
	s.wantQueued(t, 77, "u")
	w, err := s.Watch(t.Context(), s.v.ID)
	if err != nil {
		t.Fatalf("got %v, want the oldest to be watched", err)
	}
	w.Close()
}

func TestOnlyAnOrderOfWhichNothingIsKnownCostsALookAtAllVouchers(t *testing.T) {
	s, g := manyVouchers(t)
	own, err := s.Buy(t.Context(), "u", s.v.ID)
	if err != nil {
		t.Fatal(err)
	}
	const polls = 10
	for range polls {
		s.wantQueued(t, own, "u")
	}
	if got := g.all.Load(); got != 0 || g.one.Load() != polls {
		t.Errorf("got %d looks at all vouchers and %d at one, want one for each of %d polls", got, g.one.Load(), polls)
	}
	s.elsewhere(t, 77, "w")
	for range polls {
		s.wantQueued(t, 77, "w")
	}
	if got := g.all.Load(); got != 1 || g.one.Load() != 2*polls-1 {
		t.Errorf("got %d looks at all vouchers and %d at one for another's order, want one at all", got, g.one.Load())
	}
}

func TestWhoAsksForOrdersThatNeverWereHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30 * 365 * 24 * time.Hour) // a bubble begins before the first id
		s, g := manyVouchers(t)
		g.takes = 10 * time.Millisecond
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for loop := range sale.ID(8) {
			wg.Go(func() {
				for order := 1_000_000 * (loop + 1); ctx.Err() == nil; order++ {
					if _, err := s.Order(t.Context(), sale.Reader{User: "x"}, order, 0); sale.CodeOf(err) != sale.CodeNotFound {
						t.Errorf("got %v, want not found", err)
					}
				}
			})
		}
		for i := range sale.ID(5) {
			user := fmt.Sprint("u", i)
			s.elsewhere(t, 100+i, user)
			asked := time.Now()
			s.wantQueued(t, 100+i, user)
			if waited := time.Since(asked); waited > 200*time.Millisecond {
				t.Errorf("got an answer after %v, want no more than the rest and two looks", waited)
			}
		}
		wg.Wait()
		if busy, all := time.Duration(g.all.Load())*g.takes, time.Since(began); busy > all/4 {
			t.Errorf("got the gate busy with that for %v of %v, want a quarter at the most", busy, all)
		}
		time.Sleep(time.Second) // the last rest
	})
}
