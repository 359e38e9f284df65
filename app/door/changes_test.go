package door

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// accounts are a database of which only the changes are asked.
type accounts struct {
	Accounts
	mu      sync.Mutex
	changed []Account
	err     error
	looks   int
}

func (a *accounts) ChangedAccounts(context.Context, time.Duration) ([]Account, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looks++
	return a.changed, a.err
}

func (a *accounts) put(as ...Account) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed = as
}

func (a *accounts) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

func TestATokenEndsWithThePasswordOrTheRoleThatItWasMadeFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &accounts{}
		c := &Changes{Accounts: db, Within: time.Hour, Log: slog.New(slog.DiscardHandler)}
		s := &Sessions{Keys: keysOf(t, 1), TTL: time.Hour, Changes: c}
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { c.Run(ctx) })
		defer wg.Wait()
		defer stop()
		want := func(when, token string, want error) {
			t.Helper()
			if n, err := s.Read(token); !errors.Is(err, want) {
				t.Errorf("%s: got %+v, %v, want %v", when, n, err, want)
			}
		}
		first := Account{User: "ann", Hash: "one", Role: Buyer}
		other := Account{User: "bob", Hash: "one", Role: Buyer}
		token, _ := s.Issue(first)
		others, _ := s.Issue(other)
		synctest.Wait()
		want("nothing has changed", token, nil)

		second := Account{User: "ann", Hash: "two", Role: Buyer}
		db.put(second)
		time.Sleep(5 * time.Second)
		want("another password", token, ErrChanged)
		want("another password of somebody else", others, nil)
		token, _ = s.Issue(second)
		want("the new password", token, nil)

		third := Account{User: "ann", Hash: "two", Role: Operator}
		db.put(third)
		time.Sleep(5 * time.Second)
		want("another role", token, ErrChanged)

		// Whoever logs in right after a change is not told to log in again.
		time.Sleep(lookEvery / 2)
		fourth := Account{User: "ann", Hash: "four", Role: Operator}
		db.put(fourth)
		fresh, _ := s.Issue(fourth)
		want("a login that is newer than the last look", fresh, nil)

		db.fail(errors.New("away"))
		time.Sleep(time.Minute)
		want("the database is away", fresh, nil)
		want("the database is away, for what is known", token, ErrChanged)
	})
}

func TestATokenThatIsRefusedCostsTheDatabaseLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &accounts{changed: []Account{{User: "ann", Hash: "two", Role: Buyer}}}
		c := &Changes{Accounts: db, Within: time.Hour, Log: slog.New(slog.DiscardHandler)}
		s := &Sessions{Keys: keysOf(t, 1), TTL: time.Hour, Changes: c}
		if err := c.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		old, _ := s.Issue(Account{User: "ann", Hash: "one", Role: Buyer})
		good, _ := s.Issue(Account{User: "bob", Hash: "one", Role: Buyer})
		for range 1000 {
			if _, err := s.Read(old); !errors.Is(err, ErrChanged) {
				t.Fatalf("got %v, want %v", err, ErrChanged)
			}
			if _, err := s.Read(good); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		if db.looks > 7 {
			t.Errorf("got %d looks in a second of refusals, want at most one in 200 ms", db.looks)
		}
	})
}

func TestAStampChangesWithPasswordAndRoleAlone(t *testing.T) {
	a := Account{User: "ann", Hash: "one", Role: Buyer}
	hash, role, name := a, a, a
	hash.Hash, role.Role, name.Created = "two", Operator, time.Now()
	if a.Stamp() == hash.Stamp() || a.Stamp() == role.Stamp() || a.Stamp() != name.Stamp() {
		t.Errorf("got %s, then %s, %s and %s, want the first two to differ from it", a.Stamp(), hash.Stamp(), role.Stamp(), name.Stamp())
	}
}
