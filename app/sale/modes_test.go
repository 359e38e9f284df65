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
	"queuelab/queue"
)

// counted counts how often the database is asked what is left.
type counted struct {
	*rows
	looks atomic.Int64
	away  atomic.Bool
}

func (c *counted) Voucher(ctx context.Context, id sale.ID) (sale.Voucher, error) {
	c.looks.Add(1)
	if c.away.Load() {
		return sale.Voucher{}, errLost
	}
	return c.rows.Voucher(ctx, id)
}

func (c *counted) OrdersOf(_ context.Context, user string, _ []sale.ID, _ int) (os []sale.Order, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.orders {
		if o.UserID == user {
			os = append(os, o)
		}
	}
	return os, nil
}

// queueFirst is a shop whose gate holds no stock.
func queueFirst(t *testing.T, p queue.Publisher, stock int64) (*shop, *counted) {
	t.Helper()
	s := newShop(t, p)
	c := &counted{rows: s.store}
	s.Store, s.Mine, s.Seller = c, c, &sale.QueueFirst{Service: s.Service}
	s.gate.Stockless(func(ctx context.Context, id sale.ID) (int64, error) {
		v, err := s.store.Voucher(ctx, id)
		return v.Left, err
	})
	now := time.Now()
	var err error
	if s.v, err = s.CreateVoucher(t.Context(), sale.Offer{Title: "tea", Stock: stock, Begin: now, End: now.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	return s, c
}

func TestBuyersQueueUpWithoutStockAtTheGate(t *testing.T) {
	s, _ := queueFirst(t, &fakePublisher{}, 2)
	for i := range 10 {
		if _, err := s.Buy(t.Context(), fmt.Sprint("u", i), s.v.ID); err != nil {
			t.Fatalf("buyer %d of 10 for 2 units: got %v, want a place in the line", i, err)
		}
	}
	if left, ok, err := s.gate.Left(t.Context(), s.v.ID); err != nil || !ok || left != 2 {
		t.Errorf("got %d left (%v, %v), want what the database has, 2", left, ok, err)
	}
}

// synchronized is a publisher for many callers.
type synchronized struct {
	mu sync.Mutex
	fakePublisher
}

func (p *synchronized) Publish(ctx context.Context, ms ...queue.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fakePublisher.Publish(ctx, ms...)
}

func TestNoMoreStandInTheLineThanItsBound(t *testing.T) {
	for name, tc := range map[string]struct{ own, service, buckets, want int64 }{
		"the voucher's comes first":                {own: 10, service: 20, want: 10},
		"the service's where the voucher has none": {own: 0, service: 20, want: 20},
		"as many as there are buckets":             {own: 0, service: 20, buckets: 30, want: 30},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := queueFirst(t, &synchronized{}, 1000)
			s.MaxInFlight = tc.service
			now := time.Now()
			var err error
			if s.v, err = s.CreateVoucher(t.Context(), sale.Offer{Title: "tea", Stock: 1000, MaxInFlight: tc.own, Buckets: int(tc.buckets), Begin: now, End: now.Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
			if s.v.MaxInFlight != tc.want {
				t.Errorf("got a voucher with %d orders in flight at the most, want %d: all instances read it there", s.v.MaxInFlight, tc.want)
			}
			wantLine(t, s, tc.want)
		})
	}
}

// wantLine has many buyers click at once, of whom most find room.
func wantLine(t *testing.T, s *shop, most int64) {
	t.Helper()
	var in, busy atomic.Int64
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			_, err := s.Buy(t.Context(), fmt.Sprint("u", i), s.v.ID)
			switch {
			case err == nil:
				in.Add(1)
			case sale.CodeOf(err) == sale.CodeBusy:
				busy.Add(1)
			default:
				t.Errorf("got %v, want busy", err)
			}
		})
	}
	wg.Wait()
	if in.Load() != most || busy.Load() != 200-most {
		t.Errorf("got %d in the line and %d told to come again, want %d and %d", in.Load(), busy.Load(), most, 200-most)
	}
}

func TestAtSellOutClicksAreRefusedWithoutJoiningTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30 * 365 * 24 * time.Hour) // a synctest begins in 2000, where no id can be made
		pub := &fakePublisher{}
		s, c := queueFirst(t, pub, 1)
		order, err := s.Buy(t.Context(), "first", s.v.ID)
		if err != nil {
			t.Fatal(err)
		}
		s.store.confirm(s.v.ID, order, "first")
		time.Sleep(200 * time.Millisecond) // the look before is too old by then
		sent, looks := len(pub.sent), c.looks.Load()
		for i := range 100 {
			if _, err := s.Buy(t.Context(), fmt.Sprint("late", i), s.v.ID); sale.CodeOf(err) != sale.CodeSoldOut {
				t.Fatalf("got %v, want sold out", err)
			}
		}
		if len(pub.sent) != sent || c.looks.Load() != looks+1 {
			t.Errorf("100 clicks after the end: got %d messages and %d looks into the database, want 0 and 1", len(pub.sent)-sent, c.looks.Load()-looks)
		}
		if _, err := s.Buy(t.Context(), "first", s.v.ID); sale.CodeOf(err) != sale.CodeAlreadyBought {
			t.Errorf("the buyer who has it: got %v, want already bought", err)
		}
		if o, err := s.BuyOnce(t.Context(), "late0", s.v.ID, "wish"); sale.CodeOf(err) != sale.CodeSoldOut {
			t.Errorf("a buyer without a unit, by a key: got %v, %v, want sold out", o, err)
		}
		// A unit comes back.
		s.store.mu.Lock()
		v := s.store.vouchers[s.v.ID]
		v.Left = 1
		s.store.vouchers[s.v.ID] = v
		s.store.mu.Unlock()
		time.Sleep(200 * time.Millisecond)
		if _, err := s.Buy(t.Context(), "lucky", s.v.ID); err != nil {
			t.Errorf("after a unit came back: got %v, want a place in the line", err)
		}
	})
}

func TestADatabaseThatIsAwayDoesNotEndTheLine(t *testing.T) {
	s, c := queueFirst(t, &fakePublisher{}, 5)
	c.away.Store(true)
	if _, err := s.Buy(t.Context(), "u", s.v.ID); err != nil {
		t.Errorf("got %v, want a place in the line", err)
	}
}

// decider is a SyncStore that does as told.
type decider struct {
	entered chan struct{}
	leave   chan struct{}
	answer  sale.Answer
	err     error
}

func (d *decider) SellNow(ctx context.Context, c sale.Click) (sale.Answer, error) {
	if d.entered != nil {
		d.entered <- struct{}{}
		select {
		case <-d.leave:
		case <-ctx.Done():
			return sale.Answer{}, ctx.Err()
		}
	}
	a := d.answer
	if a.Verdict == sale.Admitted && a.Order == 0 {
		a.Order = c.OrderID
	}
	return a, d.err
}

func TestASecondClickOfABuyerWaitsForNobody(t *testing.T) {
	s := newShop(t, &fakePublisher{})
	d := &decider{entered: make(chan struct{}, 3), leave: make(chan struct{}), answer: sale.Answer{Verdict: sale.Admitted}}
	s.Seller = &sale.Sync{Service: s.Service, Store: d, Lock: &admission.MemoryLock{}}
	first := make(chan error)
	go func() {
		_, err := s.Buy(t.Context(), "u", s.v.ID)
		first <- err
	}()
	<-d.entered
	if _, err := s.Buy(t.Context(), "u", s.v.ID); sale.CodeOf(err) != sale.CodeBusy {
		t.Errorf("while the first is decided: got %v, want busy", err)
	}
	if len(d.entered) > 0 {
		t.Error("the database was asked about both clicks at once, want the second one to be refused by the lock")
	}
	close(d.leave)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	if _, err := s.Buy(t.Context(), "u", s.v.ID); err != nil {
		t.Errorf("after the first was decided: got %v, want the lock to be free", err)
	}
}

func TestASyncClickIsToldWhatTheDatabaseDecided(t *testing.T) {
	for _, tc := range []struct {
		name string
		d    decider
		want sale.Code
	}{
		{"admitted: the order", decider{answer: sale.Answer{Verdict: sale.Admitted}}, ""},
		{"sold out", decider{answer: sale.Answer{Verdict: sale.SoldOut}}, sale.CodeSoldOut},
		{"bought already", decider{answer: sale.Answer{Verdict: sale.AlreadyBought, Order: 7}}, sale.CodeAlreadyBought},
		{"not started", decider{answer: sale.Answer{Verdict: sale.NotStarted}}, sale.CodeNotStarted},
		{"ended", decider{answer: sale.Answer{Verdict: sale.HasEnded}}, sale.CodeEnded},
		{"no such voucher", decider{err: sale.NotFound("no such voucher")}, sale.CodeNotFound},
		{"no answer: busy, and the outcome is not known", decider{err: errLost}, sale.CodeBusy},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newShop(t, &fakePublisher{})
			s.Seller = &sale.Sync{Service: s.Service, Store: &tc.d, Lock: &admission.MemoryLock{}}
			order, err := s.Buy(t.Context(), "u", s.v.ID)
			if sale.CodeOf(err) != tc.want || (tc.want == "") != (order != 0 && err == nil) {
				t.Errorf("got order %v, %v, want %q", order, err, tc.want)
			}
		})
	}
}
