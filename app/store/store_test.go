package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/app/store/storetest"
	"queuelab/bench/broker/brokertest"
)

func TestMain(m *testing.M) {
	brokertest.Main(m, goleak.IgnoreAnyFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1"))
}

var next atomic.Int64

func id() sale.ID { return sale.ID(next.Add(1)) }

func open(t *testing.T, rawURL string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), rawURL)
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

// fresh makes a database of its own on the PostgreSQL of the tests.
func fresh(t *testing.T) string {
	t.Helper()
	base := brokertest.Start(t, "postgres", "").URL()
	db, err := sql.Open("pgx", base)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	name := fmt.Sprintf("t%d", id())
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// both runs a test on either database.
func both(t *testing.T, test func(t *testing.T, rawURL string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, storetest.SQLite(t, filepath.Join(t.TempDir(), "a b%20c.db"))) })
	t.Run("postgres", func(t *testing.T) { test(t, fresh(t)) })
}

func voucher(t *testing.T, s *store.Store, stock int64) sale.Voucher {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Millisecond)
	v := sale.Voucher{ID: id(), Title: "茶 'n\" tea", Stock: stock, Left: stock, PayValue: 1, ActualValue: 2, Begin: now, End: now.Add(time.Hour), Created: now, PerUser: 1, Buckets: 16}
	if err := s.CreateVoucher(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	return v
}

func reservation(v sale.Voucher, user string) sale.Reservation {
	return sale.Reservation{OrderID: id(), VoucherID: v.ID, UserID: user, AtMillis: 1}
}

// outcome is a decision in a few letters.
func outcome(d sale.Decision) string {
	s := string(d.Status)
	if d.Reason != "" {
		s += " " + d.Reason
	}
	if d.Again {
		s += " again"
	}
	return s
}

func fulfil(t *testing.T, s *store.Store, rs []sale.Reservation, want ...string) {
	t.Helper()
	ds, err := s.Fulfil(t.Context(), rs)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, d := range ds {
		got = append(got, outcome(d))
		if d.OrderID != rs[i].OrderID || d.UserID != rs[i].UserID {
			t.Errorf("decision %d is about order %v of %s, want %v of %s", i, d.OrderID, d.UserID, rs[i].OrderID, rs[i].UserID)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("decisions (-want +got):\n%s", d)
	}
}

func left(t *testing.T, s *store.Store, v sale.Voucher, want int64) {
	t.Helper()
	got, err := s.Voucher(t.Context(), v.ID)
	if err != nil || got.Left != want {
		t.Errorf("got %d left, %v, want %d", got.Left, err, want)
	}
}

func TestVouchersComeBackAsTheyWere(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		a, b := voucher(t, s, 3), voucher(t, s, 4)
		got, err := s.Vouchers(t.Context(), time.Now(), 10)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]sale.Voucher{b, a}, got); d != "" {
			t.Errorf("vouchers (-want +got):\n%s", d)
		}
		if got, err := s.Vouchers(t.Context(), a.End, 10); err != nil || len(got) > 1 {
			t.Errorf("got %d vouchers that end later than the first, %v", len(got), err)
		}
		if _, err := s.Voucher(t.Context(), id()); sale.CodeOf(err) != sale.CodeNotFound {
			t.Errorf("got %v, want not found", err)
		}
	})
}

func TestFulfil(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		t.Run("one buyer and stock 1 is an order", func(t *testing.T) {
			v := voucher(t, s, 1)
			fulfil(t, s, []sale.Reservation{reservation(v, "u")}, "confirmed")
			left(t, s, v, 0)
		})
		t.Run("delivered again it is the same order, and takes nothing", func(t *testing.T) {
			v := voucher(t, s, 5)
			r := reservation(v, "u")
			fulfil(t, s, []sale.Reservation{r}, "confirmed")
			fulfil(t, s, []sale.Reservation{r}, "confirmed again")
			left(t, s, v, 4)
		})
		t.Run("twice in one batch it is one order", func(t *testing.T) {
			v := voucher(t, s, 5)
			r := reservation(v, "u")
			fulfil(t, s, []sale.Reservation{r, r}, "confirmed", "confirmed again")
			left(t, s, v, 4)
		})
		t.Run("a second order of one buyer fails, for good", func(t *testing.T) {
			v := voucher(t, s, 5)
			first, second := reservation(v, "u"), reservation(v, "u")
			fulfil(t, s, []sale.Reservation{first}, "confirmed")
			fulfil(t, s, []sale.Reservation{second}, "failed already_bought")
			fulfil(t, s, []sale.Reservation{second}, "failed already_bought again")
			left(t, s, v, 4)
		})
		t.Run("two orders of one buyer in one batch: the first wins", func(t *testing.T) {
			v := voucher(t, s, 5)
			first, second := reservation(v, "u"), reservation(v, "u")
			fulfil(t, s, []sale.Reservation{second, first}, "failed already_bought", "confirmed")
			left(t, s, v, 4)
		})
		t.Run("what finds no unit fails", func(t *testing.T) {
			v := voucher(t, s, 2)
			fulfil(t, s, []sale.Reservation{reservation(v, "a"), reservation(v, "b"), reservation(v, "c")},
				"confirmed", "confirmed", "failed sold_out")
			left(t, s, v, 0)
			fulfil(t, s, []sale.Reservation{reservation(v, "d")}, "failed sold_out")
		})
		t.Run("whoever failed may try again", func(t *testing.T) {
			v := voucher(t, s, 1)
			fulfil(t, s, []sale.Reservation{reservation(v, "a")}, "confirmed")
			fulfil(t, s, []sale.Reservation{reservation(v, "b")}, "failed sold_out")
			fulfil(t, s, []sale.Reservation{reservation(v, "b")}, "failed sold_out")
		})
		t.Run("a voucher that does not exist fails the order", func(t *testing.T) {
			fulfil(t, s, []sale.Reservation{reservation(sale.Voucher{ID: id()}, "u")}, "failed not_found")
		})
		t.Run("a batch over several vouchers decides each", func(t *testing.T) {
			v, w := voucher(t, s, 1), voucher(t, s, 1)
			fulfil(t, s, []sale.Reservation{reservation(w, "u"), reservation(v, "u"), reservation(w, "x")}, "confirmed", "confirmed", "failed sold_out")
		})
		t.Run("another buyer's order id is never told as one's own", func(t *testing.T) {
			v := voucher(t, s, 5)
			mine := reservation(v, "me")
			yours := mine
			yours.UserID = "you"
			fulfil(t, s, []sale.Reservation{mine}, "confirmed")
			fulfil(t, s, []sale.Reservation{yours}, "failed id_taken")
			left(t, s, v, 4)
		})
		t.Run("an order that failed is not confirmed later, nor the other way round", func(t *testing.T) {
			v := voucher(t, s, 5)
			a, b := reservation(v, "a"), reservation(v, "b")
			for range 2 {
				if o, err := s.Fail(t.Context(), a, "undeliverable"); err != nil || o.Status != sale.Failed || o.Reason != "undeliverable" {
					t.Fatalf("got %+v, %v", o, err)
				}
			}
			fulfil(t, s, []sale.Reservation{a, b}, "failed undeliverable again", "confirmed")
			if o, err := s.Fail(t.Context(), b, "undeliverable"); err != nil || o.Status != sale.Confirmed {
				t.Errorf("got %+v, %v, want the confirmed order", o, err)
			}
			left(t, s, v, 4)
		})
		t.Run("orders are found again, and listed for their voucher", func(t *testing.T) {
			v := voucher(t, s, 1)
			a, b := reservation(v, "a"), reservation(v, "b")
			fulfil(t, s, []sale.Reservation{a, b}, "confirmed", "failed sold_out")
			got, err := s.Orders(t.Context(), a.OrderID, b.OrderID, id())
			if err != nil || len(got) != 2 {
				t.Errorf("got %d orders, %v, want 2", len(got), err)
			}
			got, err = s.HeldOrders(t.Context(), v.ID, 0, 10)
			if err != nil || len(got) != 1 || cmp.Diff(a, got[0].Reservation) != "" {
				t.Errorf("got %+v, %v, want the confirmed one", got, err)
			}
			if got, err = s.HeldOrders(t.Context(), v.ID, a.OrderID, 10); err != nil || len(got) != 0 {
				t.Errorf("got %+v, %v after the last, want none", got, err)
			}
		})
	})
}

// Every message comes twice, at once, in batches of opposite order, with more
// buyers than stock and buyers who buy twice.
func TestManyBatchesAtOnceSellExactlyTheStock(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		const stock, buyers = 50, 80
		v := voucher(t, s, stock)
		var rs []sale.Reservation
		for i := range buyers {
			rs = append(rs, reservation(v, fmt.Sprint("u", i)), reservation(v, fmt.Sprint("u", buyers-1-i)))
		}
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := w % 4; i < len(rs); i += 4 {
					batch := rs[max(0, i-9) : i+1]
					if w >= 4 {
						batch = rs[len(rs)-1-i : min(len(rs)+9-i, len(rs))]
					}
					if _, err := s.Fulfil(context.Background(), batch); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		left(t, s, v, 0)
		got, err := s.HeldOrders(t.Context(), v.ID, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		users := map[string]bool{}
		for _, o := range got {
			users[o.UserID] = true
		}
		if len(got) != stock || len(users) != stock {
			t.Errorf("got %d orders of %d users, want %d", len(got), len(users), stock)
		}
	})
}

func TestFourInstancesMigrateAtOnce(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				s, err := store.Open(context.Background(), rawURL)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := s.Vouchers(context.Background(), time.Time{}, 1); err != nil {
					t.Error(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

// attempt counts one attempt and returns its number.
func attempt(t *testing.T, s *store.Store, message string) (int, error) {
	t.Helper()
	n, err := s.CountAttempts(t.Context(), message)
	return n[message], err
}

func TestABatchIsCountedInOneGo(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		if _, err := attempt(t, s, "b"); err != nil {
			t.Fatal(err)
		}
		const odd = "\xff\x00"
		got, err := s.CountAttempts(t.Context(), "c", "a", odd, "b", "a")
		if d := cmp.Diff(map[string]int{"a": 1, "b": 2, "c": 1, odd: 1}, got); err != nil || d != "" {
			t.Errorf("attempts (-want +got):\n%s%v", d, err)
		}
		if err := s.ForgetAttempts(t.Context(), odd, "a"); err != nil {
			t.Fatal(err)
		}
		got, err = s.CountAttempts(t.Context(), odd, "c")
		if d := cmp.Diff(map[string]int{"c": 2, odd: 1}, got); err != nil || d != "" {
			t.Errorf("attempts (-want +got):\n%s%v", d, err)
		}
	})
}

func TestAttemptsAreCountedUntilForgotten(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		for _, want := range []int{1, 2, 3} {
			if got, err := attempt(t, s, "m"); err != nil || got != want {
				t.Errorf("got %d, %v, want %d", got, err, want)
			}
		}
		if err := s.ForgetAttempts(t.Context(), "m", "other"); err != nil {
			t.Fatal(err)
		}
		if got, err := attempt(t, s, "m"); err != nil || got != 1 {
			t.Errorf("got %d, %v, want 1", got, err)
		}
	})
}

func TestADeadLetterIsKeptOnceWhateverIsInIt(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		for range 2 {
			if err := s.DeadLetter(t.Context(), "m\xff", []byte("\x00\xff"+strings.Repeat("茶", 3000)), "why\x00"); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := s.DeadLetters(t.Context()); err != nil || n != 1 {
			t.Errorf("got %d, %v, want 1", n, err)
		}
	})
}

func TestAWorkerNumberHasOneHolder(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		now := time.Now()
		acquire := func(n int, holder string, now time.Time) (int, error) {
			return s.AcquireWorker(t.Context(), n, holder, now, now.Add(sale.LeaseTTL))
		}
		if n, err := acquire(7, "a", now); err != nil || n != 7 {
			t.Fatalf("got %d, %v, want 7", n, err)
		}
		if _, err := acquire(7, "b", now); !errors.Is(err, sale.ErrTaken) {
			t.Errorf("got %v for the same number, want %v", err, sale.ErrTaken)
		}
		later := now.Add(sale.LeaseTTL + time.Second)
		if _, err := acquire(7, "b", later); err != nil {
			t.Errorf("got %v after the lease ended, want none", err)
		}
		if err := s.RenewWorker(t.Context(), 7, "a", later); !errors.Is(err, sale.ErrTaken) {
			t.Errorf("got %v for a renewal by who lost it, want %v", err, sale.ErrTaken)
		}
		if err := s.RenewWorker(t.Context(), 7, "b", later.Add(time.Hour)); err != nil {
			t.Error(err)
		}
		seen := map[int]bool{7: true}
		for i := range 20 {
			n, err := acquire(-1, fmt.Sprint(i), now)
			if err != nil || seen[n] || n < 0 || n > sale.MaxWorker {
				t.Fatalf("got %d, %v, want a number that nobody has", n, err)
			}
			seen[n] = true
		}
	})
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	for name, rawURL := range map[string]string{
		"unknown scheme":     "mysql://u:secret@127.0.0.1/x",
		"no server":          "postgres://u:secret@127.0.0.1:1/x",
		"password parameter": "postgres://u@127.0.0.1:1/x?password=secret",
		"bad parameter":      "postgres://u@127.0.0.1:1/x?password=secret&sslmode=bad",
		"not a URL":          "host=127.0.0.1 user=u password=secret",
		"bad escape":         "postgres://u:se%cret@127.0.0.1:1/x",
		"no file":            "sqlite:",
		"no such directory":  "sqlite:/nowhere/at/all.db",
		"parameters":         "sqlite:x.db?mode=memory",
	} {
		s, err := store.Open(t.Context(), rawURL)
		if err == nil {
			s.Close()
			t.Errorf("%s: got no error", name)
		} else if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %q, want one line without the password", name, err)
		}
	}
}

func TestWhatIsTransient(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		v := voucher(t, s, 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Fulfil(ctx, []sale.Reservation{reservation(v, "u")}); !store.Transient(err) {
			t.Errorf("got %v, want one that is transient", err)
		}
		// PostgreSQL refuses the zero byte for ever; SQLite takes it.
		if _, err := s.Fulfil(t.Context(), []sale.Reservation{reservation(v, "\x00")}); store.Transient(err) {
			t.Errorf("got %v as transient, want it permanent", err)
		}
		if err := s.CreateVoucher(t.Context(), v); err == nil || store.Transient(err) {
			t.Errorf("got %v for a second voucher of one id, want a permanent error", err)
		}
		other := open(t, rawURL)
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Fulfil(t.Context(), []sale.Reservation{reservation(v, "u")}); !store.Transient(err) {
			t.Errorf("got %v from a closed store, want one that is transient", err)
		}
	})
}
