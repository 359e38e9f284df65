package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/app/sale"
	"queuelab/app/store"
)

// bySignal makes a voucher that opens by signal; change may alter it.
func bySignal(t *testing.T, s *store.Store, change func(*sale.Voucher)) sale.Voucher {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Millisecond)
	v := sale.Voucher{ID: id(), Title: "tea", Stock: 1, Buckets: 1, Left: 1, Begin: now.Add(-time.Minute), End: now.Add(time.Hour), Created: now, PerUser: 1, Signal: true}
	if change != nil {
		change(&v)
	}
	if err := s.CreateVoucher(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestASaleIsOpenedByOneOfAllWhoTry(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s, other := open(t, rawURL), open(t, rawURL)
		v := bySignal(t, s, nil)
		if got, err := s.Voucher(t.Context(), v.ID); err != nil || cmp.Diff(v, got) != "" {
			t.Errorf("got %v, %s", err, cmp.Diff(v, got))
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		fired, moments := 0, map[time.Time]bool{}
		for i := range 16 {
			wg.Go(func() {
				by := s
				if i%2 == 1 {
					by = other
				}
				got, mine, err := by.OpenSale(t.Context(), v.ID, false)
				mu.Lock()
				defer mu.Unlock()
				if err != nil || got.Opened.IsZero() {
					t.Errorf("got %+v, %v, want an open sale", got, err)
				}
				moments[got.Opened] = true
				if mine {
					fired++
				}
			})
		}
		wg.Wait()
		if fired != 1 || len(moments) != 1 {
			t.Errorf("got %d who opened it, at %d moments, want 1 and 1", fired, len(moments))
		}
	})
}

func TestASignalIsGivenWhenItIsDueAndNotElse(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		now := time.Now()
		for _, tc := range []struct {
			name      string
			change    func(*sale.Voucher)
			due, hand bool // opens when it is due, or by hand
		}{
			{"one whose moment has come", func(v *sale.Voucher) { v.OpenAt = now.Add(-time.Second) }, true, true},
			{"one whose moment comes", func(v *sale.Voucher) { v.OpenAt = now.Add(time.Minute) }, false, true},
			{"one that is given by hand", nil, false, true},
			{"one before the sale", func(v *sale.Voucher) { v.Begin, v.OpenAt = now.Add(time.Minute), now.Add(-time.Second) }, false, false},
			{"one after the sale", func(v *sale.Voucher) { v.End, v.OpenAt = now.Add(-time.Second), now.Add(-time.Minute) }, false, false},
			{"none: the clock opens", func(v *sale.Voucher) { v.Signal = false }, false, false},
		} {
			for due, want := range map[bool]bool{true: tc.due, false: tc.hand} {
				v := bySignal(t, s, tc.change)
				got, mine, err := s.OpenSale(t.Context(), v.ID, due)
				if err != nil || mine != want || got.Opened.IsZero() == want {
					t.Errorf("%s, due %v: got opened at %v: %v, %v, want %v", tc.name, due, got.Opened, mine, err, want)
				}
			}
		}
		if _, _, err := s.OpenSale(t.Context(), id(), false); sale.CodeOf(err) != sale.CodeNotFound {
			t.Errorf("got %v, want not found", err)
		}
	})
}

func TestSignalsListsWhatIsToBeGivenFirst(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		now := time.Now()
		opened := bySignal(t, s, nil)
		if _, _, err := s.OpenSale(t.Context(), opened.ID, false); err != nil {
			t.Fatal(err)
		}
		later := bySignal(t, s, func(v *sale.Voucher) { v.OpenAt = now.Add(time.Minute) })
		byHand := bySignal(t, s, nil)
		bySignal(t, s, func(v *sale.Voucher) { v.End = now.Add(-time.Second) })
		voucher(t, s, 1) // by the clock
		got, err := s.Signals(t.Context())
		if err != nil || len(got) != 3 {
			t.Fatalf("got %+v, %v, want three", got, err)
		}
		if got[0].Voucher != byHand.ID || got[0].In != sale.NotByItself || !got[0].Opened.IsZero() {
			t.Errorf("got %+v, want that which is given by hand", got[0])
		}
		if in := got[1].In; got[1].Voucher != later.ID || in < 50*time.Second || in > time.Minute {
			t.Errorf("got %+v, want the one in a minute", got[1])
		}
		if got[2].Voucher != opened.ID || got[2].Opened.IsZero() {
			t.Errorf("got %+v, want the one that is open", got[2])
		}
	})
}
