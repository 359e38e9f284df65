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
		due, err := s.ToGiveBack(t.Context(), 10)
		if err != nil || len(due) != 1 || due[0].OrderID != r.OrderID {
			t.Fatalf("got %+v, %v, want the closed order", due, err)
		}
		if err := s.GivenBack(t.Context(), r.OrderID); err != nil {
			t.Fatal(err)
		}
		if due, err = s.ToGiveBack(t.Context(), 10); err != nil || len(due) != 0 {
			t.Errorf("got %+v, %v, want none", due, err)
		}
		fulfil(t, s, []sale.Reservation{reservation(v, "u")}, "confirmed")
	})
}

func TestOnlyWhatIsUnpaidAndDueExpires(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		v := voucher(t, s, 5)
		v.ID, v.PayWithin = id(), time.Minute
		if err := s.CreateVoucher(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		w := voucher(t, s, 5)
		a, b := reservation(v, "a"), reservation(w, "b")
		fulfil(t, s, []sale.Reservation{a, b}, "confirmed", "confirmed")
		if os, err := s.Expire(t.Context(), time.Now(), 10); err != nil || len(os) != 0 {
			t.Fatalf("got %+v, %v before the deadline, want none", os, err)
		}
		later := time.Now().Add(2 * time.Minute)
		os, err := s.Expire(t.Context(), later, 10)
		if err != nil || len(os) != 1 || os[0].OrderID != a.OrderID || os[0].Status != sale.Cancelled || os[0].Reason != store.ReasonUnpaid {
			t.Fatalf("got %+v, %v, want the order with a deadline", os, err)
		}
		if os, err = s.Expire(t.Context(), later, 10); err != nil || len(os) != 0 {
			t.Errorf("got %+v, %v the second time, want none", os, err)
		}
		left(t, s, v, 5)
		left(t, s, w, 4)
	})
}
