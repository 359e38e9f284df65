package main

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheSchemaIsMigratedWhenAsked(t *testing.T) {
	dir := t.TempDir()
	db := "--db=sqlite:" + filepath.Join(dir, "seckill.db")
	status := func() (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), []string{"migrate", "status", db}, &out, io.Discard)
		return out.String(), err
	}
	if got := refusal(t, db, "--migrate=off"); !strings.Contains(got, "seckill migrate") || !strings.Contains(got, "00001_sale.sql") {
		t.Errorf("got %q, want what to do about the empty database", got)
	}
	if got, err := status(); !errors.Is(err, errPending) || !strings.Contains(got, "pending") {
		t.Errorf("got %q and %v, want pending migrations", got, err)
	}
	for _, want := range []string{"applied 00001_sale.sql\n", "up to date"} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{"migrate", db}, &out, io.Discard); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("got %q, %v, want %q in it", out.String(), err, want)
		}
	}
	if got, err := status(); err != nil || strings.Contains(got, "pending") || !strings.Contains(got, "00002_life.sql") {
		t.Errorf("got %q and %v, want all applied", got, err)
	}
	p := start(t, dir, "--migrate=off")
	p.stop(t)
}
