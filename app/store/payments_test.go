package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"queuelab/app/sale"
	"queuelab/app/store"
)

func pay(t *testing.T, s *store.Store, r sale.Reservation, id string) (sale.Order, sale.Payment) {
	t.Helper()
	o, p, err := s.Pay(t.Context(), sale.Payment{ID: id, OrderID: r.OrderID, Cents: 1})
	if err != nil {
		t.Fatal(err)
	}
	return o, p
}

func TestAPaymentThatIsToldTwiceIsOne(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		r := reservation(paidWithin(t, s, 5, time.Hour), "u")
		fulfil(t, s, []sale.Reservation{r}, "confirmed")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				o, p, err := s.Pay(t.Context(), sale.Payment{ID: "p", OrderID: r.OrderID, Cents: 1})
				if err != nil || o.Status != sale.Paid || p.State != sale.Taken || o.Paid.IsZero() {
					t.Errorf("got %+v, %+v, %v, want the order paid and the payment taken", o, p, err)
				}
			})
		}
		wg.Wait()
		if o, p := pay(t, s, r, "another"); o.Status != sale.Paid || p.State != sale.RefundDue || p.Reason != sale.ReasonPaid {
			t.Errorf("got %+v, %+v for a second payment, want it due back", o, p)
		}
		ps, err := s.Payments(t.Context(), sale.Taken, sale.Payment{}, 10)
		if err != nil || len(ps) != 1 || ps[0].ID != "p" || ps[0].Cents != 1 {
			t.Errorf("got %+v, %v, want the one payment", ps, err)
		}
	})
}

func TestWhatIsNoPaymentOfTheOrderKeepsNothing(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		v := paidWithin(t, s, 5, time.Hour)
		r, other := reservation(v, "u"), reservation(v, "w")
		fulfil(t, s, []sale.Reservation{r, other}, "confirmed", "confirmed")
		pay(t, s, other, "taken")
		for _, c := range []struct {
			name string
			p    sale.Payment
			want sale.Code
		}{
			{"another amount", sale.Payment{ID: "a", OrderID: r.OrderID, Cents: 2}, sale.CodeInvalid},
			{"no such order", sale.Payment{ID: "a", OrderID: id(), Cents: 1}, sale.CodeNotFound},
		} {
			if _, _, err := s.Pay(t.Context(), c.p); sale.CodeOf(err) != c.want {
				t.Errorf("%s: got %v, want %s", c.name, err, c.want)
			}
		}
		for _, state := range []sale.PaymentState{sale.RefundDue, sale.Taken} {
			if ps, err := s.Payments(t.Context(), state, sale.Payment{}, 10); err != nil || len(ps) > 1 || len(ps) == 1 && ps[0].ID != "taken" {
				t.Errorf("got %+v, %v, want none but the other buyer's", ps, err)
			}
		}
		// The other order has a payment of this name too: that is another one.
		if o, _ := pay(t, s, r, "taken"); o.Status != sale.Paid {
			t.Errorf("got %+v, want the order paid after all", o)
		}
	})
}

// Hundreds of orders whose time to pay ends while they are paid, cancelled by
// their buyers and expired, all at once.
func TestAPaymentAtTheDeadlineHasOneWinner(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		const n = 240
		v := paidWithin(t, s, n, 150*time.Millisecond)
		rs := make([]sale.Reservation, n)
		for i := range rs {
			rs[i] = reservation(v, fmt.Sprint("u", i))
		}
		for i := 0; i < n; i += 40 {
			if _, err := s.Fulfil(t.Context(), rs[i:i+40]); err != nil {
				t.Fatal(err)
			}
		}
		ctx := context.Background()
		paid, closed := make([]bool, n), make([]bool, n)
		var wg sync.WaitGroup
		for w := range 6 {
			wg.Go(func() {
				for i := w; i < n; i += 6 {
					o, p, err := s.Pay(ctx, sale.Payment{ID: "p" + rs[i].UserID, OrderID: rs[i].OrderID, Cents: 1})
					paid[i] = p.State == sale.Taken
					if err != nil || paid[i] != (o.Status == sale.Paid) || !paid[i] && p.State != sale.RefundDue {
						t.Errorf("got %+v, %+v, %v, want the two to agree", o, p, err)
					}
				}
			})
		}
		wg.Go(func() {
			for i := n - 1; i >= 0; i -= 3 {
				_, mine, err := s.CloseOrder(ctx, rs[i].OrderID, sale.Cancelled, sale.ReasonByBuyer)
				if err != nil {
					t.Error(err)
				}
				closed[i] = mine
			}
		})
		expired := map[sale.ID]bool{}
		var mu sync.Mutex
		for range 2 {
			wg.Go(func() {
				for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
					os, err := s.Expire(ctx, 16)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					for _, o := range os {
						if expired[o.OrderID] {
							t.Errorf("order %v expired twice", o.OrderID)
						}
						expired[o.OrderID] = true
					}
					mu.Unlock()
					if d, err := s.Due(ctx); err == nil && d.Unpaid == store.Never {
						return
					}
				}
			})
		}
		wg.Wait()
		sold := 0
		for i, r := range rs {
			winners := 0
			for _, won := range []bool{paid[i], closed[i], expired[r.OrderID]} {
				if won {
					winners++
				}
			}
			if winners != 1 {
				t.Errorf("order %v: paid %v, cancelled %v, expired %v, want one of them", r.OrderID, paid[i], closed[i], expired[r.OrderID])
			}
			if paid[i] {
				sold++
			}
		}
		t.Logf("%d of %d were paid, %d expired", sold, n, len(expired))
		left(t, s, v, int64(n-sold))
		due, err := s.Payments(ctx, sale.RefundDue, sale.Payment{}, 2*n)
		if err != nil || len(due) != n-sold {
			t.Errorf("got %d payments due back, %v, want %d", len(due), err, n-sold)
		}
	})
}

func TestMoneyGoesBackOnce(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		v := paidWithin(t, s, 5, time.Hour)
		a, b, c := reservation(v, "a"), reservation(v, "b"), reservation(v, "c")
		fulfil(t, s, []sale.Reservation{a, b, c}, "confirmed", "confirmed", "confirmed")
		pay(t, s, a, "a1")
		pay(t, s, a, "a2") // pays nothing
		pay(t, s, b, "b1")
		if _, _, err := s.CloseOrder(t.Context(), c.OrderID, sale.Cancelled, sale.ReasonByBuyer); err != nil {
			t.Fatal(err)
		}
		pay(t, s, c, "c1") // too late

		refund := func(id string, wantDid bool) {
			t.Helper()
			order := map[byte]sale.Reservation{'a': a, 'b': b, 'c': c}[id[0]].OrderID
			if p, did, err := s.RefundPayment(t.Context(), order, id); err != nil || did != wantDid || p.State != sale.MoneyBack || p.ID != id {
				t.Errorf("refund %s: got %+v, %v, %v, want it refunded, and by this call: %v", id, p, did, err, wantDid)
			}
		}
		refund("a2", true)
		refund("a2", false)
		left(t, s, v, 3) // the order is still paid
		refund("a1", true)
		refund("a1", false)
		left(t, s, v, 4)
		refund("c1", true)
		if o, did, err := s.CloseOrder(t.Context(), b.OrderID, sale.Refunded, sale.ReasonByOperator); err != nil || !did || o.Status != sale.Refunded {
			t.Errorf("got %+v, %v, %v, want the order refunded", o, did, err)
		}
		refund("b1", false)
		left(t, s, v, 5)
		if _, _, err := s.RefundPayment(t.Context(), b.OrderID, "a1"); sale.CodeOf(err) != sale.CodeNotFound {
			t.Errorf("got %v, want not found", err)
		}
		if o, p := pay(t, s, b, "b1"); o.Status != sale.Refunded || p.State != sale.MoneyBack || p.Reason != "" {
			t.Errorf("got %+v, %+v for a payment told again after its refund, want it as it stands", o, p)
		}
		for _, state := range []sale.PaymentState{sale.Taken, sale.RefundDue} {
			if ps, err := s.Payments(t.Context(), state, sale.Payment{}, 10); err != nil || len(ps) != 0 {
				t.Errorf("got %+v, %v, want none %s", ps, err, state)
			}
		}
		if ps, err := s.Payments(t.Context(), sale.MoneyBack, sale.Payment{OrderID: a.OrderID, ID: "a1"}, 2); err != nil || len(ps) != 2 || ps[0].ID != "a2" || ps[1].ID != "b1" {
			t.Errorf("got %+v, %v, want the two after a1", ps, err)
		}
	})
}

func TestNothingPaysAnOrderThatFailed(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		v := paidWithin(t, s, 1, 0)
		a, b := reservation(v, "a"), reservation(v, "b")
		fulfil(t, s, []sale.Reservation{a, b}, "confirmed", "failed sold_out")
		if o, p := pay(t, s, b, "b1"); o.Status != sale.Failed || p.State != sale.RefundDue || p.Reason != sale.ReasonNotSold {
			t.Errorf("got %+v, %+v, want the payment due back", o, p)
		}
		if o, _ := pay(t, s, a, "a1"); o.Status != sale.Paid {
			t.Errorf("got %+v, want the order without a deadline paid", o)
		}
	})
}
