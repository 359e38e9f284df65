package store_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"queuelab/app/sale"
	"queuelab/app/store"
)

func change(t *testing.T, s *store.Store, statement string) {
	t.Helper()
	if err := s.Change(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func TestASchemaThatDoesNotFitSaysNothingAboutAnOrder(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		v := voucher(t, s, 1)
		r := reservation(v, "u")
		for _, names := range [][2]string{{"vouchers RENAME stock_left TO", "vouchers RENAME x TO stock_left"}, {"orders RENAME TO", "x RENAME TO orders"}} {
			change(t, s, "ALTER TABLE "+names[0]+" x")
			_, err := s.Fulfil(t.Context(), []sale.Reservation{r})
			if !store.Misfit(err) || !store.Transient(err) {
				t.Errorf("%s: got %v, want a misfit, which is transient", names[0], err)
			}
			change(t, s, "ALTER TABLE "+names[1])
		}
		fulfil(t, s, []sale.Reservation{r}, "confirmed")
	})
	for _, err := range []error{nil, errors.New("x")} {
		if store.Misfit(err) {
			t.Errorf("got %v as a misfit", err)
		}
	}
}

// Statements that were prepared before a column came are repeated, whichever
// connection they meet.
func TestAColumnThatIsAddedMeanwhileIsNobodysError(t *testing.T) {
	s := open(t, fresh(t))
	v := voucher(t, s, 64)
	sell := func(user string) {
		t.Helper()
		r := reservation(v, user)
		fulfil(t, s, []sale.Reservation{r}, "confirmed")
		if _, ok, err := s.CloseOrder(t.Context(), r.OrderID, sale.Cancelled, sale.ReasonByBuyer); err != nil || !ok {
			t.Errorf("got %v, %v, want the order closed", ok, err)
		}
	}
	read := func() {
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				if _, err := s.Vouchers(t.Context(), time.Now(), 10); err != nil {
					t.Errorf("read vouchers: %v", err)
				}
			})
		}
		all.Wait()
	}
	// One after the other, they are all on one connection.
	sell("a")
	change(t, s, "ALTER TABLE orders ADD note TEXT")
	sell("b")
	read()
	change(t, s, "ALTER TABLE vouchers ADD note TEXT")
	read()
}

// Whether a connection is gone is found out only by its next use.
func TestConnectionsThatAreGoneAreNoReadersError(t *testing.T) {
	s := open(t, fresh(t))
	voucher(t, s, 1)
	read := func() {
		t.Helper()
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				if vs, err := s.Vouchers(t.Context(), time.Now(), 10); err != nil || len(vs) != 1 {
					t.Errorf("read vouchers: got %v, %v, want one", vs, err)
				}
			})
		}
		all.Wait()
	}
	read()
	change(t, s, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	read()
}
