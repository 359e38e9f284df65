package store_test

import (
	"net/url"
	"testing"
	"time"

	"queuelab/app/sale"
	"queuelab/app/store"
)

// patient is a database URL by which a forgotten transaction lasts so long.
func patient(t *testing.T, rawURL, last string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("idle_in_transaction_session_timeout", last)
	u.RawQuery = q.Encode()
	return u.String()
}

// An instance that froze in a transaction keeps what it locked, and its
// connection stays open: only the server can end that.
func TestATransactionThatIsForgottenEndsAndTheOthersGoOn(t *testing.T) {
	rawURL := fresh(t)
	s := open(t, rawURL)
	v := voucher(t, s, 3)
	frozen := open(t, patient(t, rawURL, "500ms"))
	wake, err := frozen.Forget(t.Context(), v.ID)
	if err != nil {
		t.Fatal(err)
	}
	fulfil(t, s, []sale.Reservation{reservation(v, "u")}, "confirmed")
	left(t, s, v, 2)
	if err := wake(); err == nil || !store.Transient(err) {
		t.Errorf("got %v from the transaction that was forgotten, want a transient error", err)
	}
	// The frozen instance wakes up to connections that work.
	eventually(t, "the instance decides orders again", func() bool {
		ds, err := frozen.Fulfil(t.Context(), []sale.Reservation{reservation(v, "w")})
		return err == nil && len(ds) == 1 && ds[0].Order.Status == sale.Confirmed
	})
	left(t, s, v, 1)
}

func TestEverySessionIsBounded(t *testing.T) {
	rawURL := fresh(t)
	s := open(t, rawURL)
	bounds := map[string]time.Duration{}
	for _, name := range []string{"idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout"} {
		d, err := s.Session(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		bounds[name] = d
	}
	idle, lock, statement := bounds["idle_in_transaction_session_timeout"], bounds["lock_timeout"], bounds["statement_timeout"]
	if idle <= 0 || lock <= idle || statement <= lock {
		t.Errorf("got %v, want each bounded: a wait for a lock longer than a forgotten transaction lasts, and a statement longer than that wait", bounds)
	}
	other := open(t, patient(t, rawURL, "7s"))
	if d, err := other.Session(t.Context(), "idle_in_transaction_session_timeout"); err != nil || d != 7*time.Second {
		t.Errorf("got %v, %v, want the URL's 7s", d, err)
	}
}
