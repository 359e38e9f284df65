package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"queuelab/app/sale"
	"queuelab/app/store"
)

// Number 8 was never used, and never can be: see the next test.
func TestMigrationsAreNumberedWithoutGaps(t *testing.T) {
	s := open(t, "sqlite:"+filepath.Join(t.TempDir(), "x.db"))
	ms, err := s.Migrations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, m := range ms {
		if want++; want == 8 {
			want++
		}
		var got int
		if _, err := fmt.Sscanf(m.Name, "%05d_", &got); err != nil || got != want {
			t.Errorf("got migration %s, %v, want number %d: a database that has later ones refuses it", m.Name, err, want)
		}
	}
}

// What comes late with an early number stops the start of every instance, so it
// must not come.
func TestAMigrationBelowTheNewestIsRefused(t *testing.T) {
	s := open(t, "sqlite:"+filepath.Join(t.TempDir(), "x.db"))
	if err := s.UpWith(t.Context(), "00008_late.sql"); err == nil {
		t.Error("got it applied, want a database that has later ones to refuse it")
	}
	if err := s.UpWith(t.Context(), "00999_next.sql"); err != nil {
		t.Errorf("got %v, want the next one applied", err)
	}
}

func TestASchemaThatIsNewerThanTheBuildIsRefused(t *testing.T) {
	rawURL := "sqlite:" + filepath.Join(t.TempDir(), "x.db")
	s := open(t, rawURL)
	if err := s.UpWith(t.Context(), "00999_next.sql"); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"up": s.Up(t.Context()), "list": func() error { _, err := s.Migrations(t.Context()); return err }()} {
		if !errors.Is(err, store.ErrNewer) || !strings.Contains(fmt.Sprint(err), "999") {
			t.Errorf("%s: got %v, want it refused", name, err)
		}
	}
	if again, err := store.Open(t.Context(), rawURL); err == nil {
		_ = again.Close()
		t.Error("got a store, want none: this build could read it wrongly")
	}
}

func TestEveryMigrationCanBeUndone(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		if err := s.Down(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Ledger(t.Context(), 1); err == nil || sale.CodeOf(err) != "" {
			t.Errorf("got %v, want the tables gone", err)
		}
		if err := s.Up(t.Context()); err != nil {
			t.Fatal(err)
		}
		v := voucher(t, s, 1)
		fulfil(t, s, []sale.Reservation{reservation(v, "a")}, "confirmed")
	})
}
