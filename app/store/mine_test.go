package store_test

import (
	"testing"
	"time"

	"queuelab/app/sale"
)

func TestABuyerSeesOrdersOfAllStates(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		v := paidWithin(t, s, 1, time.Hour)
		a, b, other := reservation(v, "a"), reservation(v, "a"), reservation(v, "other")
		fulfil(t, s, []sale.Reservation{a}, "confirmed")
		if _, _, err := s.CloseOrder(t.Context(), a.OrderID, sale.Cancelled, sale.ReasonByBuyer); err != nil {
			t.Fatal(err)
		}
		fulfil(t, s, []sale.Reservation{b, other}, "confirmed", "failed sold_out")
		own, err := s.OrdersOf(t.Context(), "a", []sale.ID{v.ID}, 10)
		if err != nil || len(own) != 2 || own[0].OrderID != b.OrderID || own[0].Status != sale.Confirmed || own[1].Status != sale.Cancelled {
			t.Errorf("got %+v, %v, want the confirmed order and then the cancelled one", own, err)
		}
		if own, err := s.OrdersOf(t.Context(), "a", []sale.ID{v.ID}, 1); err != nil || len(own) != 1 {
			t.Errorf("got %+v, %v, want the newest one", own, err)
		}
		if own, err := s.OrdersOf(t.Context(), "other", []sale.ID{v.ID}, 10); err != nil || len(own) != 1 || own[0].Reason != "sold_out" {
			t.Errorf("got %+v, %v, want the failed one", own, err)
		}
	})
}
