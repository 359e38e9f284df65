package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/app/store/storetest"
)

// bothTwo runs a test on two databases of either kind.
func bothTwo(t *testing.T, test func(t *testing.T, orders, stock string)) {
	t.Run("sqlite", func(t *testing.T) {
		dir := t.TempDir()
		test(t, storetest.SQLite(t, filepath.Join(dir, "orders.db")), storetest.SQLite(t, filepath.Join(dir, "stock.db")))
	})
	t.Run("postgres", func(t *testing.T) { test(t, fresh(t), fresh(t)) })
}

func openTwo(t *testing.T, orders, stock string) *store.Store {
	t.Helper()
	s, err := store.OpenTwo(t.Context(), orders, stock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// settled wants that nothing is on its way, and that both databases have as much
// left.
func settled(t *testing.T, s *store.Store, v sale.Voucher, want int64) {
	t.Helper()
	n, err := s.Outbox(t.Context())
	if err != nil || n != 0 {
		t.Errorf("got %d requests in the outbox, %v, want none", n, err)
	}
	left(t, s, v, want)
	got, err := s.Stock().Voucher(t.Context(), v.ID)
	if err != nil || got.Left != want {
		t.Errorf("got %d units in the database of the stock, %v, want %d", got.Left, err, want)
	}
}

func relay(t *testing.T, s *store.Store) []sale.Order {
	t.Helper()
	if err := s.Overdue(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all []sale.Order
	for {
		os, did, err := s.Relay(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, os...)
		if did == 0 {
			return all
		}
	}
}

func TestOrdersOverTwoDatabasesAreDecidedAsOverOne(t *testing.T) {
	bothTwo(t, func(t *testing.T, orders, stock string) {
		s := openTwo(t, orders, stock)
		v := voucher(t, s, 2)
		a := reservation(v, "a")
		fulfil(t, s, []sale.Reservation{a, reservation(v, "b"), reservation(v, "c")}, "confirmed", "confirmed", "failed sold_out")
		fulfil(t, s, []sale.Reservation{a, a}, "confirmed again", "confirmed again")
		settled(t, s, v, 0)
		unknown := sale.Voucher{ID: id()}
		fulfil(t, s, []sale.Reservation{reservation(unknown, "a")}, "failed not_found")
		// The same buyer again, who has one, gets none, and the unit goes back.
		w := voucher(t, s, 5)
		fulfil(t, s, []sale.Reservation{reservation(w, "a")}, "confirmed")
		fulfil(t, s, []sale.Reservation{reservation(w, "a")}, "failed already_bought")
		relay(t, s)
		settled(t, s, w, 4)
	})
}

func TestAnOrderThatIsLeftBetweenTwoDatabasesIsFinishedOnce(t *testing.T) {
	points := []struct {
		name string
		stop func(t *testing.T, s *store.Store, r sale.Reservation) error
		want string // by a message that comes again
	}{
		{"before anything", func(*testing.T, *store.Store, sale.Reservation) error { return nil }, "confirmed"},
		{"after the stock is to be asked", func(t *testing.T, s *store.Store, r sale.Reservation) error { return s.Ask(t.Context(), r) }, "confirmed"},
		{"after the stock has answered", func(t *testing.T, s *store.Store, r sale.Reservation) error {
			if err := s.Ask(t.Context(), r); err != nil {
				return err
			}
			return s.Answer(t.Context())
		}, "confirmed"},
		{"after the order is decided", func(t *testing.T, s *store.Store, r sale.Reservation) error {
			_, err := s.Fulfil(t.Context(), []sale.Reservation{r})
			return err
		}, "confirmed again"},
	}
	bothTwo(t, func(t *testing.T, orders, stock string) {
		for _, p := range points {
			for _, by := range []string{"a message that comes again", "the relay"} {
				t.Run(p.name+", by "+by, func(t *testing.T) {
					s, err := store.OpenTwo(t.Context(), orders, stock)
					if err != nil {
						t.Fatal(err)
					}
					v := voucher(t, s, 1)
					r := reservation(v, "a")
					if err := p.stop(t, s, r); err != nil {
						t.Fatal(err)
					}
					if n, _ := s.Outbox(t.Context()); n > 0 {
						hidden(t, s, r)
					}
					if err := s.Close(); err != nil { // the process is gone
						t.Fatal(err)
					}
					s = openTwo(t, orders, stock)
					if by == "the relay" {
						n, err := s.Outbox(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						if os := relay(t, s); len(os) != n || n > 0 && os[0].Status != sale.Confirmed {
							t.Errorf("got %v, want %d confirmed order", os, n)
						}
						if n == 0 && p.want == "confirmed" {
							return // nobody knows of the order but its message
						}
						p.want = "confirmed again"
					}
					fulfil(t, s, []sale.Reservation{r}, p.want)
					settled(t, s, v, 0)
				})
			}
		}
	})
}

// hidden wants that no reader sees the order, and that it counts as under way.
func hidden(t *testing.T, s *store.Store, r sale.Reservation) {
	t.Helper()
	os, err := s.Orders(t.Context(), r.OrderID)
	if err != nil || len(os) != 0 {
		t.Errorf("got %v, %v, want no order before its unit is certain", os, err)
	}
	got, ok, err := s.UnderWay(t.Context(), r.OrderID)
	if err != nil || !ok || got != r {
		t.Errorf("got %v, %v, %v, want the order to be under way", got, ok, err)
	}
}

func TestAUnitComesBackToItsOwnDatabase(t *testing.T) {
	bothTwo(t, func(t *testing.T, orders, stock string) {
		s := openTwo(t, orders, stock)
		v := voucher(t, s, 1)
		first := reservation(v, "a")
		fulfil(t, s, []sale.Reservation{first}, "confirmed")
		for range 2 {
			if _, _, err := s.CloseOrder(t.Context(), first.OrderID, sale.Cancelled, sale.ReasonByBuyer); err != nil {
				t.Fatal(err)
			}
		}
		// Nobody has relayed it yet, and the gate may have admitted somebody on it.
		second := reservation(v, "b")
		fulfil(t, s, []sale.Reservation{second}, "confirmed")
		settled(t, s, v, 0)
		if _, _, err := s.CloseOrder(t.Context(), second.OrderID, sale.Cancelled, sale.ReasonByBuyer); err != nil {
			t.Fatal(err)
		}
		relay(t, s)
		fulfil(t, s, []sale.Reservation{first}, "cancelled by_buyer again")
		relay(t, s)
		settled(t, s, v, 1)
	})
}

func TestAnOrderThatIsGivenUpUnderWayKeepsNoUnit(t *testing.T) {
	bothTwo(t, func(t *testing.T, orders, stock string) {
		for name, answered := range map[string]bool{"before the stock has answered": false, "after it": true} {
			t.Run(name, func(t *testing.T) {
				s := openTwo(t, orders, stock)
				v := voucher(t, s, 1)
				r := reservation(v, "a")
				if err := s.Ask(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				if answered {
					if err := s.Answer(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if o, err := s.Fail(t.Context(), r, "undeliverable"); err != nil || o.Status != sale.Failed {
					t.Fatalf("got %v, %v, want a failed order", o, err)
				}
				relay(t, s)
				settled(t, s, v, 1)
				fulfil(t, s, []sale.Reservation{r}, "failed undeliverable again")
			})
		}
	})
}

func TestADatabaseOfTheStockThatIsAwayDecidesNothing(t *testing.T) {
	dir := t.TempDir()
	orders, stock := "sqlite:"+filepath.Join(dir, "orders.db"), "sqlite:"+filepath.Join(dir, "stock.db")
	s, err := store.OpenTwo(t.Context(), orders, stock)
	if err != nil {
		t.Fatal(err)
	}
	v := voucher(t, s, 1)
	r := reservation(v, "a")
	if err := s.Stock().Close(); err != nil {
		t.Fatal(err)
	}
	if ds, err := s.Fulfil(t.Context(), []sale.Reservation{r}); err == nil || !store.Transient(err) {
		t.Errorf("got %v, %v, want an error after which the worker waits and tries again", ds, err)
	}
	hidden(t, s, r)
	if err := s.Ping(t.Context()); err == nil {
		t.Error("got a service that is ready, want one that says it is not")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openTwo(t, orders, stock)
	fulfil(t, s, []sale.Reservation{r}, "confirmed")
	settled(t, s, v, 0)
}

func TestManyInstancesOverTwoDatabasesLoseNoUnit(t *testing.T) {
	bothTwo(t, func(t *testing.T, orders, stock string) {
		const units, buyers = 20, 60
		s := openTwo(t, orders, stock)
		v := voucher(t, s, units)
		var rs []sale.Reservation
		for i := range buyers {
			rs = append(rs, reservation(v, fmt.Sprint("u", i)))
		}
		ctx, stop := context.WithCancel(t.Context())
		var workers, relays sync.WaitGroup
		for range 2 {
			relays.Go(func() {
				for ctx.Err() == nil {
					if err := s.Overdue(ctx); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
					if _, _, err := s.Relay(ctx, 10); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				}
			})
		}
		for n := range 4 {
			rng := rand.New(rand.NewPCG(uint64(n), 0))
			workers.Go(func() { // each message comes to all of them
				todo := rng.Perm(buyers)
				for len(todo) > 0 {
					var batch []sale.Reservation
					for _, i := range todo[:min(7, len(todo))] {
						batch = append(batch, rs[i])
					}
					todo = todo[len(batch):]
					ds, err := s.Fulfil(t.Context(), batch)
					if err != nil {
						t.Error(err)
						return
					}
					for _, d := range ds {
						if d.Status == sale.Confirmed && d.OrderID%3 == 0 {
							if _, _, err := s.CloseOrder(t.Context(), d.OrderID, sale.Cancelled, sale.ReasonByBuyer); err != nil {
								t.Error(err)
							}
						}
					}
				}
			})
		}
		workers.Wait()
		stop()
		relays.Wait()
		relay(t, s)
		held, err := s.HeldOrders(t.Context(), v.ID, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(held) > units {
			t.Errorf("got %d sold, want %d at most", len(held), units)
		}
		settled(t, s, v, units-int64(len(held)))
	})
}

func TestTwoDatabasesMustBeTwoThatBelongTogether(t *testing.T) {
	dir := t.TempDir()
	one, other := "sqlite:"+filepath.Join(dir, "one.db"), "sqlite:"+filepath.Join(dir, "other.db")
	if _, err := store.OpenTwo(t.Context(), one, one); err == nil || !strings.Contains(err.Error(), "another one") {
		t.Errorf("the same database twice: got %v, want a refusal", err)
	}
	s := open(t, one)
	v := sale.Voucher{ID: id(), Title: "tea", Stock: 1, Left: 1, Begin: time.Now(), End: time.Now().Add(time.Hour), Created: time.Now()}
	if err := s.CreateVoucher(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if _, err := store.OpenTwo(t.Context(), one, other); err == nil || !strings.Contains(err.Error(), v.ID.String()) {
		t.Errorf("a voucher whose stock is beside the orders: got %v, want a refusal that names it", err)
	}
}

func TestADatabaseIsOpenedAsItIs(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return "sqlite:" + filepath.Join(dir, name) }
	for _, name := range []string{"orders.db", "stock.db"} {
		if s, err := store.OpenAsIs(t.Context(), file(name)); !errors.Is(err, store.ErrNoFile) {
			t.Errorf("%s: got %v, %v, want %v", name, s, err, store.ErrNoFile)
		}
		open(t, file(name))
	}
	if err := os.WriteFile(filepath.Join(dir, "old.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := store.OpenTwoAsIs(t.Context(), file("orders.db"), file("old.db")); err == nil {
		s.Close()
		t.Error("got no error for a stock without tables, want one: nobody may make them here")
	}
	s, err := store.OpenTwoAsIs(t.Context(), file("orders.db"), file("stock.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestALedgerTellsOfBothDatabasesWhenNothingIsBetweenThem(t *testing.T) {
	bothTwo(t, func(t *testing.T, orders, stock string) {
		s := openTwo(t, orders, stock)
		v := voucher(t, s, 5)
		want := func(left int64, between int) {
			t.Helper()
			l, err := s.Ledger(t.Context(), v.ID)
			if err != nil || l.Between != between || (l.StockLeft == nil) != (between > 0) || l.StockLeft != nil && *l.StockLeft != left {
				t.Errorf("got %+v (%v), %v, want %d left in the database of the stock, unless any of %d requests is on its way", l, l.StockLeft, err, left, between)
			}
		}
		want(5, 0)
		a := reservation(v, "a")
		if err := s.Ask(t.Context(), a, reservation(v, "b")); err != nil {
			t.Fatal(err)
		}
		want(0, 2)
		if err := s.Answer(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(0, 2) // 3 in the one and 5 in the other
		relay(t, s)
		want(3, 0)
		if _, ok, err := s.CloseOrder(t.Context(), a.OrderID, sale.Cancelled, "test"); err != nil || !ok {
			t.Fatalf("got %v, %v, want it closed", ok, err)
		}
		want(0, 1)
		relay(t, s)
		want(4, 0)
		if err := s.Stock().Add(t.Context(), v.ID, 3); err != nil { // by hand
			t.Fatal(err)
		}
		want(7, 0)
	})
}

// While orders come and go between two databases no ledger may contradict them.
func TestALedgerNeverMistakesWhatIsOnItsWay(t *testing.T) {
	dir := t.TempDir()
	s := openTwo(t, "sqlite:"+filepath.Join(dir, "orders.db"), "sqlite:"+filepath.Join(dir, "stock.db"))
	v := voucher(t, s, 1000)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for i := range 60 {
			r := reservation(v, fmt.Sprint("u", i))
			if _, err := s.Fulfil(t.Context(), []sale.Reservation{r}); err != nil {
				t.Error(err)
				return
			}
			if i%3 != 0 {
				continue
			}
			if _, _, err := s.CloseOrder(t.Context(), r.OrderID, sale.Cancelled, "test"); err != nil {
				t.Error(err)
				return
			}
		}
	})
	looks, quiet := 0, 0
	for ended := false; !ended; looks++ {
		select {
		case <-done:
			ended = true
		default:
		}
		l, err := s.Ledger(t.Context(), v.ID)
		if err != nil {
			t.Fatal(err)
		}
		if l.StockLeft == nil {
			continue
		}
		if quiet++; *l.StockLeft != l.Left {
			t.Fatalf("got %d left and %d in the database of the stock at look %d, want both of one moment", l.Left, *l.StockLeft, looks)
		}
	}
	wg.Wait()
	t.Logf("%d of %d looks saw both", quiet, looks)
}
