package main

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite" // driver "sqlite"

	"queuelab/app/sale"
	"queuelab/app/store"
)

func TestVerifyComparesTheTwoDatabases(t *testing.T) {
	dir := t.TempDir()
	orders, stock := filepath.Join(dir, "orders.db"), filepath.Join(dir, "stock.db")
	s, err := store.OpenTwo(t.Context(), "sqlite:"+orders, "sqlite:"+stock)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Now()
	v := sale.Voucher{ID: 7, Title: "tea", Stock: 5, Left: 5, Begin: now.Add(-time.Hour), End: now.Add(time.Hour), Created: now, PerUser: 1}
	if err := s.CreateVoucher(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fulfil(t.Context(), []sale.Reservation{{OrderID: 1, VoucherID: 7, UserID: "a"}, {OrderID: 2, VoucherID: 7, UserID: "b"}}); err != nil {
		t.Fatal(err)
	}
	args := []string{"--db", "sqlite:" + orders, "--stock-db", "sqlite:" + stock}
	wantVerify(t, 0, []string{"stock 5 = 3 left + 2 held", "balanced: 1 vouchers"}, args...)
	raw, err := sql.Open("sqlite", "file:"+stock)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.ExecContext(t.Context(), "PRAGMA busy_timeout=5000; UPDATE vouchers SET stock_left = stock_left + 3"); err != nil {
		t.Fatal(err)
	}
	wantVerify(t, 3, []string{"drift: databases_differ", "6 left in the database of the stock and 3 in that of the orders", "NOT balanced"}, args...)
}
