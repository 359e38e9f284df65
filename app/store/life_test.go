package store_test

import (
	"sync"
	"testing"
	"time"

	"queuelab/app/sale"
	"queuelab/app/store"
)

func TestAnOrderIsClosedOnceAndItsUnitComesBack(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		v := voucher(t, s, 2)
		r := reservation(v, "u")
		fulfil(t, s, []sale.Reservation{r}, "confirmed")
		var wg sync.WaitGroup
		var mu sync.Mutex
		closed := 0
		for range 8 {
			wg.Go(func() {
				o, mine, err := s.CloseOrder(t.Context(), r.OrderID, sale.Cancelled, "by_buyer")
				mu.Lock()
				defer mu.Unlock()
				if err != nil || o.Status != sale.Cancelled || o.Reason != "by_buyer" {
					t.Errorf("got %+v, %v, want the cancelled order", o, err)
				}
				if mine {
					closed++
				}
			})
		}
		wg.Wait()
		if closed != 1 {
			t.Errorf("got %d calls that closed the order, want 1", closed)
		}
		left(t, s, v, 2)
		if _, _, err := s.CloseOrder(t.Context(), id(), sale.Cancelled, "by_buyer"); sale.CodeOf(err) != sale.CodeNotFound {
			t.Errorf("got %v, want not found", err)
		}
		wantDue(t, s, false, true)
		due, err := s.ToGiveBack(t.Context(), time.Hour, 10)
		if err != nil || len(due) != 1 || due[0].OrderID != r.OrderID || due[0].Cool {
			t.Fatalf("got %+v, %v, want the order that was closed just now", due, err)
		}
		if due, err = s.ToGiveBack(t.Context(), 0, 10); err != nil || len(due) != 0 {
			t.Errorf("got %+v, %v, want none: another one looks after it", due, err)
		}
		wantDue(t, s, false, false)
		if err := s.GiveBackSoon(t.Context(), r.OrderID); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is due again", func() bool { due, err = s.ToGiveBack(t.Context(), 0, 10); return err != nil || len(due) == 1 })
		if err != nil || !due[0].Cool {
			t.Errorf("got %+v, %v, want the order, closed longer ago than nothing", due, err)
		}
		if err := s.GivenBack(t.Context(), r.OrderID); err != nil {
			t.Fatal(err)
		}
		if due, err = s.ToGiveBack(t.Context(), 0, 10); err != nil || len(due) != 0 {
			t.Errorf("got %+v, %v, want none", due, err)
		}
		fulfil(t, s, []sale.Reservation{reservation(v, "u")}, "confirmed")
	})
}

func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !yes(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

// wantDue asks whether an order is to be cancelled now, and one to be given back.
func wantDue(t *testing.T, s *store.Store, unpaid, giveBack bool) {
	t.Helper()
	d, err := s.Due(t.Context())
	if err != nil || (d.Unpaid <= 0) != unpaid || (d.GiveBack <= 0) != giveBack {
		t.Errorf("got %+v, %v, want due now: unpaid %v, give back %v", d, err, unpaid, giveBack)
	}
}

// paidWithin makes a voucher whose orders are to be paid within so long.
func paidWithin(t *testing.T, s *store.Store, stock int64, within time.Duration) sale.Voucher {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Millisecond)
	v := sale.Voucher{ID: id(), Title: "tea", Stock: stock, Left: stock, PayValue: 1, ActualValue: 2, Begin: now, End: now.Add(time.Hour), Created: now,
		PerUser: 1, PayWithin: within}
	if err := s.CreateVoucher(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestOnlyWhatIsUnpaidAndDueExpires(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		soon, later, never := paidWithin(t, s, 5, time.Millisecond), paidWithin(t, s, 5, time.Hour), paidWithin(t, s, 5, 0)
		a, b, c, d := reservation(soon, "a"), reservation(later, "b"), reservation(never, "c"), reservation(later, "d")
		fulfil(t, s, []sale.Reservation{b, c, d}, "confirmed", "confirmed", "confirmed")
		wantDue(t, s, false, false)
		if os, err := s.Expire(t.Context(), 10); err != nil || len(os) != 0 {
			t.Fatalf("got %+v, %v before any deadline, want none", os, err)
		}
		if due, err := s.Due(t.Context()); err != nil || due.Unpaid > time.Hour || due.Unpaid < time.Hour-time.Minute {
			t.Errorf("got %v, %v until the next deadline, want about an hour", due.Unpaid, err)
		}
		fulfil(t, s, []sale.Reservation{a}, "confirmed")
		eventually(t, "the order with the short deadline is due", func() bool { due, err := s.Due(t.Context()); return err == nil && due.Unpaid <= 0 })
		os, err := s.Expire(t.Context(), 10)
		if err != nil || len(os) != 1 || os[0].OrderID != a.OrderID || os[0].Status != sale.Cancelled || os[0].Reason != sale.ReasonUnpaid {
			t.Fatalf("got %+v, %v, want the order with the short deadline", os, err)
		}
		if os, err = s.Expire(t.Context(), 10); err != nil || len(os) != 0 {
			t.Errorf("got %+v, %v the second time, want none", os, err)
		}
		wantDue(t, s, false, true)
		left(t, s, soon, 5)
		left(t, s, later, 3)
		left(t, s, never, 4)
	})
}

// Each of the instances that look at the same time gets orders of its own.
func TestInstancesShareWhatExpires(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		const n = 60
		v := paidWithin(t, s, n, time.Millisecond)
		var rs []sale.Reservation
		for range n {
			r := reservation(v, id().String())
			rs = append(rs, r)
		}
		if _, err := s.Fulfil(t.Context(), rs); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		expired, given := map[sale.ID]int{}, map[sale.ID]int{}
		count := func(of map[sale.ID]int) int { mu.Lock(); defer mu.Unlock(); return len(of) }
		var wg sync.WaitGroup
		for range 4 {
			other := open(t, rawURL)
			wg.Go(func() {
				for deadline := time.Now().Add(20 * time.Second); count(given) < n && time.Now().Before(deadline); {
					os, err := other.Expire(t.Context(), 7)
					units, err2 := other.ToGiveBack(t.Context(), time.Hour, 7)
					if err != nil || err2 != nil {
						t.Error(err, err2)
						return
					}
					mu.Lock()
					for _, o := range os {
						expired[o.OrderID]++
					}
					for _, u := range units {
						given[u.OrderID]++
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		for _, r := range rs {
			if expired[r.OrderID] != 1 || given[r.OrderID] != 1 {
				t.Errorf("order %v: got %d times cancelled and %d times taken up, want once each", r.OrderID, expired[r.OrderID], given[r.OrderID])
			}
		}
		left(t, s, v, n)
	})
}
