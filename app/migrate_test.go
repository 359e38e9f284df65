package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"queuelab/app/store"
)

// migrate runs seckill migrate.
func migrate(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), append([]string{"migrate"}, args...), &out, io.Discard)
	return out.String(), err
}

func TestTheSchemaIsMigratedWhenAsked(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "seckill.db")
	db := "--db=sqlite:" + file
	status := func() (string, error) { return migrate(t, "status", db) }
	if got := refusal(t, db, "--migrate=off"); !strings.Contains(got, "seckill migrate") {
		t.Errorf("got %q, want what to do about the missing database", got)
	}
	if got, err := status(); !errors.Is(err, store.ErrNoFile) {
		t.Errorf("got %q and %v, want %v", got, err, store.ErrNoFile)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := refusal(t, db, "--migrate=off"); !strings.Contains(got, "seckill migrate") || !strings.Contains(got, "00001_sale.sql") {
		t.Errorf("got %q, want what to do about the empty database", got)
	}
	if got, err := status(); !errors.Is(err, errPending) || !strings.Contains(got, "pending") {
		t.Errorf("got %q and %v, want pending migrations", got, err)
	}
	// Whatever begins with off leaves the schema alone, the stock's too.
	other := filepath.Join(dir, "stock.db")
	if got, err := migrate(t, "--db=sqlite:"+other); err != nil || !strings.Contains(got, "applied 00001_sale.sql\n") {
		t.Errorf("got %q, %v, want a new database", got, err)
	}
	if got := refusal(t, "--db=sqlite:"+other, "--stock-db=sqlite:"+file, "--migrate=off"); !strings.Contains(got, "seckill.db lacks 00001_sale.sql") {
		t.Errorf("got %q, want what the stock's database lacks", got)
	}
	f := &flags{DB: "sqlite:" + file}
	f.operations.Migrate = "off"
	c := operatorAdd{Name: "ann"}
	if err := c.run(t.Context(), f, strings.NewReader("correct horse\n"), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "lacks 00001_sale.sql") {
		t.Errorf("got %v, want a refusal to add an operator to a database without a schema", err)
	}
	if got, err := status(); !errors.Is(err, errPending) {
		t.Errorf("got %q and %v, want the migrations still to come", got, err)
	}
	for _, want := range []string{"applied 00001_sale.sql\n", "up to date"} {
		if got, err := migrate(t, db); err != nil || !strings.Contains(got, want) {
			t.Errorf("got %q, %v, want %q in it", got, err, want)
		}
	}
	if got, err := status(); err != nil || strings.Contains(got, "pending") || !strings.Contains(got, "00002_life.sql") {
		t.Errorf("got %q and %v, want all applied", got, err)
	}
	p := start(t, dir, "--migrate=off")
	p.stop(t)
}
