package store_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/bench/broker/brokertest"
)

func TestALedgerCountsEveryOrderOnce(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		v, other := voucher(t, s, 5), voucher(t, s, 5)
		if l, err := s.Ledger(t.Context(), v.ID); err != nil || l.Stock != 5 || l.Left != 5 || l.Decided() != 0 || l.Title != v.Title {
			t.Errorf("got %+v, %v, want the voucher and no orders", l, err)
		}
		var rs []sale.Reservation
		for _, u := range []string{"a", "b", "c", "d", "e", "f"} {
			rs = append(rs, reservation(v, u))
		}
		fulfil(t, s, rs, "confirmed", "confirmed", "confirmed", "confirmed", "confirmed", "failed sold_out")
		fulfil(t, s, []sale.Reservation{reservation(other, "a")}, "confirmed")
		for i, to := range []sale.Status{sale.Cancelled, sale.Refunded} {
			if to == sale.Refunded {
				if _, _, err := s.Pay(t.Context(), sale.Payment{ID: "p" + rs[i].OrderID.String(), OrderID: rs[i].OrderID, Cents: 1}); err != nil {
					t.Fatal(err)
				}
			}
			if _, ok, err := s.CloseOrder(t.Context(), rs[i].OrderID, to, "test"); err != nil || !ok {
				t.Fatalf("got %v, %v, want it closed", ok, err)
			}
		}
		if _, _, err := s.Pay(t.Context(), sale.Payment{ID: "p" + rs[2].OrderID.String(), OrderID: rs[2].OrderID, Cents: 1}); err != nil {
			t.Fatal(err)
		}
		l, err := s.Ledger(t.Context(), v.ID)
		if err != nil {
			t.Fatal(err)
		}
		got := [...]int64{l.Stock, l.Left, l.Confirmed, l.Paid, l.Failed, l.Cancelled, l.Refunded, l.Units, l.GiveBack, l.Held(), l.Decided()}
		if want := [...]int64{5, 2, 2, 1, 1, 1, 1, 3, 2, 3, 6}; got != want {
			t.Errorf("got %v, want %v", got, want)
		}
		if _, err := s.Ledger(t.Context(), id()); sale.CodeOf(err) != sale.CodeNotFound {
			t.Errorf("got %v, want not found", err)
		}
	})
}

func TestOneIsAloneOnADatabase(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		a, b := open(t, rawURL), open(t, rawURL)
		first, err := a.Sole(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Sole(t.Context()); !errors.Is(err, store.ErrNotSole) {
			t.Errorf("got %v, want %v", err, store.ErrNotSole)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		second, err := b.Sole(t.Context())
		if err != nil {
			t.Fatalf("got %v, want it free again", err)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestBeingAloneSurvivesARestartOfTheDatabase(t *testing.T) {
	rawURL := fresh(t)
	a, b := open(t, rawURL), open(t, rawURL)
	first, err := a.Sole(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := first.Watch(ctx); err != nil {
			t.Errorf("got %v, want the right kept", err)
		}
	})
	pg := brokertest.Start(t, "postgres", "")
	if err := errors.Join(pg.Kill(t.Context()), pg.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", rawURL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	deadline := time.Now().Add(30 * time.Second)
	for held := 0; held == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the right is not asked for again")
		}
		err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "+
			"WHERE d.datname = current_database() AND locktype = 'advisory'").Scan(&held)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // the server is another process
	}
	if _, err := b.Sole(t.Context()); !errors.Is(err, store.ErrNotSole) {
		t.Errorf("got %v, want %v", err, store.ErrNotSole)
	}
	cancel()
	wg.Wait()
	if err := first.Close(); err != nil {
		t.Error(err)
	}
}
