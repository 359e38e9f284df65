package store_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"queuelab/app/sale"
	"queuelab/app/store"
)

func keep(t *testing.T, s *store.Store, message, body string) {
	t.Helper()
	if err := s.DeadLetter(t.Context(), message, []byte(body), "why"); err != nil {
		t.Fatal(err)
	}
}

func wantLetter(t *testing.T, s *store.Store, message string, state sale.LetterState, by string, times int) {
	t.Helper()
	l, err := s.Letter(t.Context(), message)
	if err != nil || l.State != state || l.DoneBy != by || l.Times != times || l.Done.IsZero() != (by == "") {
		t.Errorf("got %+v, %v, want it %s by %q, given up %d times", l, err, state, by, times)
	}
}

func TestABodyComesBackAsItWas(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		for i, body := range []string{"", "{}", "\x00\xff", "茶", strings.Repeat("\xfe", 64<<10)} {
			keep(t, s, fmt.Sprint("m", i), body)
			if l, err := s.Letter(t.Context(), fmt.Sprint("m", i)); err != nil || string(l.Body) != body {
				t.Errorf("got %d bytes, %v, want the %d as they were", len(l.Body), err, len(body))
			}
		}
		keep(t, s, "long", strings.Repeat("x", 65<<10))
		if l, err := s.Letter(t.Context(), "long"); err != nil || len(l.Body) != 64<<10 {
			t.Errorf("got %d bytes, %v, want what fits", len(l.Body), err)
		}
	})
}

func TestADeadLetterIsReplayedOrDiscardedOnce(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		const n = 12
		for i := range n {
			keep(t, s, fmt.Sprint("m", i), "{")
		}
		var did [n]atomic.Int64
		var wg sync.WaitGroup
		for w := range 6 {
			wg.Go(func() {
				for i := range n {
					var ok bool
					var err error
					if w%2 == 0 {
						ok, err = s.StartReplay(t.Context(), fmt.Sprint("m", i), "r")
					} else {
						ok, err = s.Discard(t.Context(), fmt.Sprint("m", i), "d", nil)
					}
					if err != nil {
						t.Error(err)
					}
					if ok {
						did[i].Add(1)
					}
				}
			})
		}
		wg.Wait()
		for i := range n {
			if got := did[i].Load(); got != 1 {
				t.Errorf("letter %d: got %d that did something, want 1", i, got)
			}
		}
	})
}

func TestAReplayIsDueUntilItEnds(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		keep(t, s, "m", "{")
		for range 3 {
			if _, err := attempt(t, s, "m"); err != nil {
				t.Fatal(err)
			}
		}
		if ok, err := s.StartReplay(t.Context(), "m", "op"); err != nil || !ok {
			t.Fatalf("got %v, %v, want the replay to start", ok, err)
		}
		wantLetter(t, s, "m", sale.Replaying, "op", 1)
		if n, err := attempt(t, s, "m"); err != nil || n != 1 {
			t.Errorf("got attempt %d, %v, want the earlier ones forgotten", n, err)
		}
		if due, err := s.Due(t.Context()); err != nil || due.Replay <= 0 || due.Replay == store.Never {
			t.Errorf("got %v, %v, want it due in a while", due.Replay, err)
		}
		if ls, err := s.ToReplay(t.Context(), 10); err != nil || len(ls) != 0 {
			t.Errorf("got %+v, %v, want none yet", ls, err)
		}
		if err := s.EndReplay(t.Context(), "m", sale.Replayed); err != nil {
			t.Fatal(err)
		}
		wantLetter(t, s, "m", sale.Replayed, "op", 1)
		keep(t, s, "m", "{")
		wantLetter(t, s, "m", sale.Open, "op", 2)
		if err := s.EndReplay(t.Context(), "m", sale.Replayed); err != nil {
			t.Fatal(err)
		}
		wantLetter(t, s, "m", sale.Open, "op", 2) // the answer of the replay came late
		if ok, err := s.Discard(t.Context(), "m", "two", nil); err != nil || !ok {
			t.Fatalf("got %v, %v, want it discarded", ok, err)
		}
		keep(t, s, "m", "{")
		wantLetter(t, s, "m", sale.Discarded, "two", 3)
	})
}

func TestADiscardFailsAnOrderThatIsNotDecided(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		v := voucher(t, s, 5)
		a, b := reservation(v, "a"), reservation(v, "b")
		fulfil(t, s, []sale.Reservation{a}, "confirmed")
		for _, r := range []sale.Reservation{a, b} {
			keep(t, s, r.OrderID.String(), string(r.Encode()))
			if ok, err := s.Discard(t.Context(), r.OrderID.String(), "op", &r); err != nil || !ok {
				t.Fatalf("got %v, %v, want it discarded", ok, err)
			}
		}
		os, err := s.Orders(t.Context(), a.OrderID, b.OrderID)
		got := map[string]string{}
		for _, o := range os {
			got[o.UserID] = string(o.Status) + " " + o.Reason
		}
		if d := cmp.Diff(map[string]string{"a": "confirmed ", "b": "failed discarded"}, got); d != "" || err != nil {
			t.Errorf("orders (-want +got):\n%s%v", d, err)
		}
		left(t, s, v, 4)
	})
}

func TestGivingUpKeepsTheMessageAndFailsTheOrder(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		v := voucher(t, s, 5)
		a, b := reservation(v, "a"), reservation(v, "b")
		fulfil(t, s, []sale.Reservation{a}, "confirmed")
		for _, c := range []struct {
			r    sale.Reservation
			want sale.Status
		}{{a, sale.Confirmed}, {b, sale.Failed}} {
			for range 2 {
				o, err := s.GiveUp(t.Context(), c.r, c.r.OrderID.String(), c.r.Encode(), "undeliverable", "why\x00")
				if err != nil || o.Status != c.want {
					t.Errorf("got %+v, %v, want %s", o, err, c.want)
				}
			}
			wantLetter(t, s, c.r.OrderID.String(), sale.Open, "", 2)
		}
		left(t, s, v, 4)
	})
}

func TestLettersAreListedInPages(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		for i := range 5 {
			keep(t, s, fmt.Sprint("m", i), "{")
		}
		if _, err := s.Discard(t.Context(), "m3", "op", nil); err != nil {
			t.Fatal(err)
		}
		page := func(state sale.LetterState, below string) (ids string) {
			ls, err := s.ListLetters(t.Context(), state, below, 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range ls {
				ids += l.Message
			}
			return ids
		}
		for _, c := range []struct {
			state       sale.LetterState
			below, want string
		}{
			{"", "", "m4m3"}, {"", "m3", "m2m1"}, {"", "m1", "m0"}, {"", "m0", ""},
			{sale.Open, "", "m4m2"}, {sale.Discarded, "", "m3"}, {sale.Discarded, "m3", ""},
		} {
			if got := page(c.state, c.below); got != c.want {
				t.Errorf("state %q below %q: got %s, want %s", c.state, c.below, got, c.want)
			}
		}
	})
}
