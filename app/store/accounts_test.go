package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/app/door"
)

func TestANameIsOneAccount(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		if a, err := s.Account(t.Context(), "alice"); !errors.Is(err, door.ErrNoAccount) {
			t.Errorf("got %+v, %v, want %v", a, err, door.ErrNoAccount)
		}
		var added, taken atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				err := s.AddAccount(t.Context(), door.Account{User: "alice", Hash: fmt.Sprint(i), Role: door.Buyer, Created: time.UnixMilli(int64(i))})
				switch {
				case err == nil:
					added.Add(1)
				case errors.Is(err, door.ErrTaken):
					taken.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if added.Load() != 1 || taken.Load() != 7 {
			t.Errorf("got %d added and %d refused, want 1 and 7", added.Load(), taken.Load())
		}
		before, err := s.Account(t.Context(), "alice")
		if err != nil || before.Role != door.Buyer {
			t.Fatalf("got %+v, %v", before, err)
		}
		for _, name := range []string{"alice", "ann"} {
			if err := s.PutAccount(t.Context(), door.Account{User: name, Hash: "new", Role: door.Operator, Created: time.UnixMilli(99)}); err != nil {
				t.Fatal(err)
			}
		}
		want := door.Account{User: "alice", Hash: "new", Role: door.Operator, Created: before.Created}
		if got, err := s.Account(t.Context(), "alice"); err != nil || !cmp.Equal(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		if got, err := s.Account(t.Context(), "ann"); err != nil || got.Role != door.Operator || !got.Created.Equal(time.UnixMilli(99)) {
			t.Errorf("got %+v, %v, want a new operator", got, err)
		}
		if err := s.AddAccount(t.Context(), door.Account{User: "eve", Hash: "x", Role: "king"}); err == nil || errors.Is(err, door.ErrTaken) {
			t.Errorf("got %v for a role that there is not, want a failure", err)
		}
		// Names differ by case, as they do everywhere else.
		if err := s.AddAccount(t.Context(), door.Account{User: "Alice", Hash: "x", Role: door.Buyer}); err != nil {
			t.Errorf("got %v for another spelling", err)
		}
	})
}

func TestChangedAccountsAreThoseThatWerePutLately(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		for _, name := range []string{"alice", "bob"} {
			if err := s.AddAccount(t.Context(), door.Account{User: name, Hash: "old", Role: door.Buyer}); err != nil {
				t.Fatal(err)
			}
		}
		if as, err := s.ChangedAccounts(t.Context(), time.Hour); err != nil || len(as) != 0 {
			t.Errorf("got %+v, %v, want none: nobody was changed since they came", as, err)
		}
		if err := s.PutAccount(t.Context(), door.Account{User: "alice", Hash: "new", Role: door.Operator}); err != nil {
			t.Fatal(err)
		}
		as, err := s.ChangedAccounts(t.Context(), time.Hour)
		if err != nil || len(as) != 1 || as[0].User != "alice" || as[0].Hash != "new" || as[0].Role != door.Operator {
			t.Errorf("got %+v, %v, want alice as she is now", as, err)
		}
		eventually(t, "a change is forgotten", func() bool {
			as, err := s.ChangedAccounts(t.Context(), time.Millisecond)
			return err == nil && len(as) == 0
		})
	})
}
