package store_test

import (
	"errors"
	"sync"
	"testing"

	"queuelab/app/store"
)

// begin begins an attempt, which must be that number at each of the messages.
func begin(t *testing.T, s *store.Store, want int, messages ...string) store.Attempt {
	t.Helper()
	a, err := s.BeginAttempt(t.Context(), messages...)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if got := a.Number(m); got != want {
			t.Errorf("got attempt %d at %q, want %d", got, m, want)
		}
	}
	return a
}

func end(t *testing.T, s *store.Store, a store.Attempt, failed ...string) {
	t.Helper()
	if err := s.EndAttempt(t.Context(), a, failed...); err != nil {
		t.Fatal(err)
	}
}

func TestWhatFailedIsCountedUntilItIsDone(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		const odd = "\xff\x00"
		end(t, s, begin(t, s, 1, "b", "a", odd, "b"), odd, "a")
		end(t, s, begin(t, s, 1, "b"))
		end(t, s, begin(t, s, 2, "a", odd), "a")
		end(t, s, begin(t, s, 1, odd))
		end(t, s, begin(t, s, 3, "a"))
		end(t, s, begin(t, s, 1, "a"))
		end(t, s, begin(t, s, 0))
	})
}

// A process that dies neither ends its attempts nor remembers them.
func TestWhatADeadProcessBeganIsCounted(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		for want := range 3 {
			begin(t, open(t, rawURL), want+1, "killer", "neighbour")
		}
		s := open(t, rawURL)
		a := begin(t, s, 4, "killer")
		b := begin(t, s, 4, "neighbour")
		end(t, s, a, "killer")
		end(t, s, b)
		end(t, s, begin(t, s, 5, "killer"))
		end(t, s, begin(t, s, 1, "neighbour", "killer"))
	})
}

func TestAttemptsAtOtherMessagesDoNotCount(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		one, other := open(t, rawURL), open(t, rawURL)
		a := begin(t, one, 1, "a", "b")
		b := begin(t, one, 1, "c")
		end(t, other, begin(t, other, 1, "d", "e"))
		end(t, one, a)
		end(t, one, b)
		end(t, other, begin(t, other, 1, "a", "c"))
	})
}

// Whoever was only slow is taken for dead, and what is done is forgotten all the
// same.
func TestWhoWasTakenForDeadLeavesNothing(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		slow, other := open(t, rawURL), open(t, rawURL)
		a := begin(t, slow, 1, "a", "b")
		b := begin(t, other, 2, "a")
		end(t, slow, a, "a")
		end(t, other, b)
		end(t, other, begin(t, other, 1, "a", "b"))
	})
}

func TestTwoWhoTakeOverTheSameCountItOnce(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		dead := open(t, rawURL)
		begin(t, dead, 1, "a", "b", "c", "d")
		stores := []*store.Store{open(t, rawURL), open(t, rawURL), open(t, rawURL), open(t, rawURL)}
		errs := make([]error, len(stores))
		var wg sync.WaitGroup
		for i, s := range stores {
			wg.Go(func() {
				m := string(rune('a' + i))
				a, err := s.BeginAttempt(t.Context(), m)
				if err == nil && a.Number(m) != 2 {
					t.Errorf("got attempt %d at %s, want 2", a.Number(m), m)
				}
				errs[i] = errors.Join(err, s.EndAttempt(t.Context(), a))
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		end(t, dead, begin(t, dead, 1, "a", "b", "c", "d"))
	})
}
