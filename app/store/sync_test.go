package store_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"queuelab/app/sale"
	"queuelab/app/store"
)

func click(v sale.Voucher, user, key string) sale.Click {
	return sale.Click{Reservation: reservation(v, user), Key: key}
}

func sellNow(t *testing.T, s *store.Store, c sale.Click, want sale.Verdict, order sale.ID) {
	t.Helper()
	a, err := s.SellNow(t.Context(), c)
	if err != nil || a.Verdict != want || a.Order != order {
		t.Errorf("order %v of %s: got %v, order %v, %v, want %v, order %v", c.OrderID, c.UserID, a.Verdict, a.Order, err, want, order)
	}
}

func TestAClickIsDecidedInOneTransaction(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		v := voucher(t, s, 2)
		first := click(v, "a", "wish-1")
		sellNow(t, s, first, sale.Admitted, first.OrderID)
		sellNow(t, s, first, sale.Admitted, first.OrderID) // the answer was lost
		sellNow(t, s, click(v, "a", "wish-1"), sale.Admitted, first.OrderID)
		sellNow(t, s, click(v, "a", "wish-2"), sale.AlreadyBought, first.OrderID)
		sellNow(t, s, click(v, "a", ""), sale.AlreadyBought, first.OrderID)
		left(t, s, v, 1)
		second := click(v, "b", "")
		sellNow(t, s, second, sale.Admitted, second.OrderID)
		sellNow(t, s, click(v, "c", ""), sale.SoldOut, 0)
		left(t, s, v, 0)
		if os, err := s.Orders(t.Context(), first.OrderID); err != nil || len(os) != 1 || os[0].Status != sale.Confirmed {
			t.Errorf("got %v, %v, want a confirmed order", os, err)
		}
		// What is given back is sold again.
		if _, closed, err := s.CloseOrder(t.Context(), second.OrderID, sale.Cancelled, sale.ReasonByBuyer); err != nil || !closed {
			t.Fatal(err)
		}
		third := click(v, "c", "")
		sellNow(t, s, third, sale.Admitted, third.OrderID)
		// A late copy of a click undoes no cancel.
		if _, closed, err := s.CloseOrder(t.Context(), first.OrderID, sale.Cancelled, sale.ReasonByBuyer); err != nil || !closed {
			t.Fatal(err)
		}
		sellNow(t, s, click(v, "a", "wish-1"), sale.Admitted, first.OrderID)
		left(t, s, v, 1)
		if _, err := s.SellNow(t.Context(), sale.Click{Reservation: sale.Reservation{OrderID: id(), VoucherID: id(), UserID: "a"}}); sale.CodeOf(err) != sale.CodeNotFound {
			t.Errorf("no such voucher: got %v, want not found", err)
		}
	})
}

func TestAClickOutsideOfTheSaleWindowTakesNothing(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		now := time.Now()
		for _, tc := range []struct {
			begin, end time.Time
			want       sale.Verdict
		}{{now.Add(time.Hour), now.Add(2 * time.Hour), sale.NotStarted}, {now.Add(-2 * time.Hour), now.Add(-time.Hour), sale.HasEnded}} {
			v := sale.Voucher{ID: id(), Title: "tea", Stock: 1, Left: 1, Begin: tc.begin, End: tc.end, Created: now}
			if err := s.CreateVoucher(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			sellNow(t, s, click(v, "a", ""), tc.want, 0)
			left(t, s, v, 1)
		}
	})
}

func TestABuyerGetsAsManyUnitsAsTheVoucherAllows(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		now := time.Now()
		v := sale.Voucher{ID: id(), Title: "tea", Stock: 9, Left: 9, PerUser: 2, Begin: now.Add(-time.Hour), End: now.Add(time.Hour), Created: now}
		if err := s.CreateVoucher(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		a, b := click(v, "a", ""), click(v, "a", "")
		sellNow(t, s, a, sale.Admitted, a.OrderID)
		sellNow(t, s, b, sale.Admitted, b.OrderID)
		sellNow(t, s, click(v, "a", ""), sale.AlreadyBought, a.OrderID)
		left(t, s, v, 7)
	})
}

// Without the buyers' locks, which may have ended too early.
func TestARaceOfClicksSellsEachUnitOnceAndOneToEachBuyer(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		const stock, buyers, each = 10, 40, 3
		s := open(t, rawURL)
		v := voucher(t, s, stock)
		var wg sync.WaitGroup
		var sold atomic.Int64
		for b := range buyers {
			for range each {
				c := click(v, fmt.Sprint("u", b), "")
				wg.Go(func() {
					a, err := s.SellNow(t.Context(), c)
					switch {
					case err != nil:
						t.Error(err)
					case a.Verdict == sale.Admitted:
						sold.Add(1)
					}
				})
			}
		}
		wg.Wait()
		os, err := s.HeldOrders(t.Context(), v.ID, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		users := map[string]bool{}
		for _, o := range os {
			users[o.UserID] = true
		}
		if sold.Load() != stock || len(os) != stock || len(users) != stock {
			t.Errorf("got %d told, %d orders of %d buyers, want %d of each", sold.Load(), len(os), len(users), stock)
		}
		left(t, s, v, 0)
	})
}

func TestTheLastUnitsOfABatchGoToTheEarliestOrders(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		v := voucher(t, s, 2)
		// By their names the buyers come in the opposite order.
		rs := []sale.Reservation{reservation(v, "d"), reservation(v, "c"), reservation(v, "b"), reservation(v, "a")}
		fulfil(t, s, rs, "confirmed", "confirmed", "failed sold_out", "failed sold_out")
		left(t, s, v, 0)
	})
}

func TestWhoIsStillInTheQueueAtSellOutFailsInBulk(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		v, other := voucher(t, s, 1), voucher(t, s, 5)
		winner := reservation(v, "a")
		fulfil(t, s, []sale.Reservation{winner, reservation(v, "b")}, "confirmed", "failed sold_out")
		late := reservation(v, "c")
		// Neighbours of another sale, and what was decided before, are as ever.
		fulfil(t, s, []sale.Reservation{late, reservation(other, "c"), winner, reservation(v, "d")},
			"failed sold_out", "confirmed", "confirmed again", "failed sold_out")
		fulfil(t, s, []sale.Reservation{late}, "failed sold_out again")
		if _, closed, err := s.CloseOrder(t.Context(), winner.OrderID, sale.Cancelled, sale.ReasonByBuyer); err != nil || !closed {
			t.Fatal(err)
		}
		fulfil(t, s, []sale.Reservation{reservation(v, "e"), reservation(v, "f")}, "confirmed", "failed sold_out")
		left(t, s, v, 0)
		left(t, s, other, 4)
	})
}
