package door

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"queuelab/app/sale"
)

func keysOf(t testing.TB, secrets ...byte) *Keys {
	t.Helper()
	var keys [][]byte
	for _, s := range secrets {
		keys = append(keys, bytes.Repeat([]byte{s}, MinKey))
	}
	k, err := NewKeys(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestWhatWasSealedIsOpenedByItsKeyAndForItsUseOnly(t *testing.T) {
	k := keysOf(t, 1)
	token := k.Seal("a", "said")
	if got, err := k.Open("a", token); err != nil || got != "said" {
		t.Errorf("got %q, %v, want said", got, err)
	}
	if got, err := k.Open("b", token); !errors.Is(err, ErrToken) {
		t.Errorf("got %q, %v for another use", got, err)
	}
	if got, err := keysOf(t, 2).Open("a", token); !errors.Is(err, ErrToken) {
		t.Errorf("got %q, %v with another key", got, err)
	}
	random := keysOf(t)
	if got, err := random.Open("a", random.Seal("a", "")); err != nil || got != "" {
		t.Errorf("got %q, %v with a random key", got, err)
	}
	if _, err := NewKeys([]byte("short")); err == nil {
		t.Error("got keys of a short one")
	}
}

func TestOneSpellingOnlyIsAToken(t *testing.T) {
	k := keysOf(t, 1)
	token := k.Seal("a", "said")
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=\n "
	for i := range token {
		for _, l := range letters {
			if byte(l) == token[i] {
				continue
			}
			forged := token[:i] + string(l) + token[i+1:]
			if got, err := k.Open("a", forged); err == nil {
				t.Errorf("got %q of a token with %q at %d", got, l, i)
			}
		}
	}
}

func TestAFormerKeyIsBelievedAndSignsNothing(t *testing.T) {
	before := keysOf(t, 1).Seal("a", "said")
	after := keysOf(t, 2, 1)
	if got, err := after.Open("a", before); err != nil || got != "said" {
		t.Errorf("got %q, %v of the former key, want said", got, err)
	}
	if got, err := keysOf(t, 2).Open("a", after.Seal("a", "new")); err != nil || got != "new" {
		t.Errorf("got %q, %v, want a token of the first key", got, err)
	}
}

func TestASessionSaysWhoAsWhatAndUntilWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Sessions{Keys: keysOf(t, 1), TTL: time.Minute}
		token, issued := s.Issue(Account{User: "alice", Role: Operator})
		got, err := s.Read(token)
		if err != nil || got.User != "alice" || got.Role != Operator || !got.Expires.Equal(issued.Expires) {
			t.Errorf("got %+v, %v, want %+v", got, err, issued)
		}
		time.Sleep(time.Minute)
		if _, err := s.Read(token); !errors.Is(err, ErrExpired) {
			t.Errorf("got %v a minute later, want %v", err, ErrExpired)
		}
		for _, said := range []string{"", "buyer", "king 99999999999 stamp alice", "buyer 99999999999 stamp a b", "buyer soon stamp alice", "buyer 99999999999 stamp ", "buyer 99999999999 alice"} {
			if n, err := s.Read(s.Keys.Seal(useSession, said)); !errors.Is(err, ErrToken) {
				t.Errorf("got %+v, %v of %q, want %v", n, err, said, ErrToken)
			}
		}
	})
}

func TestAPurchaseTokenIsForOneBuyerOneVoucherAndAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Paths{Keys: keysOf(t, 1), TTL: time.Minute}
		token, _ := p.Issue("alice", 7)
		session, _ := (&Sessions{Keys: p.Keys, TTL: time.Hour}).Issue(Account{User: "alice", Role: Buyer})
		for _, tc := range []struct {
			name, token, user string
			voucher           sale.ID
			want              error
		}{
			{"its buyer", token, "alice", 7, nil},
			{"its buyer again", token, "alice", 7, nil},
			{"another buyer", token, "bob", 7, ErrToken},
			{"another voucher", token, "alice", 77, ErrToken},
			{"none", "", "alice", 7, ErrToken},
			{"a session", session, "alice", 7, ErrToken},
		} {
			if err := p.Check(tc.token, tc.user, tc.voucher); !errors.Is(err, tc.want) {
				t.Errorf("%s: got %v, want %v", tc.name, err, tc.want)
			}
		}
		time.Sleep(time.Minute)
		if err := p.Check(token, "alice", 7); !errors.Is(err, ErrExpired) {
			t.Errorf("got %v a minute later, want %v", err, ErrExpired)
		}
	})
}

func FuzzTokens(f *testing.F) {
	k := keysOf(f, 1)
	s, p := &Sessions{Keys: k, TTL: time.Hour}, &Paths{Keys: k, TTL: time.Hour}
	// The same in each process that fuzzes: one that is issued has a moment in it.
	session, path := k.Seal(useSession, "buyer 99999999999 stamp alice"), k.Seal(usePath, "7 99999999999999 alice")
	if _, err := s.Read(session); err != nil {
		f.Fatal(err)
	}
	if err := p.Check(path, "alice", 7); err != nil {
		f.Fatal(err)
	}
	f.Add(session, "")
	f.Add(path, "buyer 99999999999 stamp alice")
	f.Add("..", "7 99999999999999 alice")
	f.Add("a.b.c", " ")
	f.Fuzz(func(t *testing.T, token, said string) {
		if n, err := s.Read(token); err == nil && token != session {
			t.Errorf("got %+v of %q, which we did not issue", n, token)
		}
		if err := p.Check(token, "alice", 7); err == nil && token != path {
			t.Errorf("%q is a purchase token", token)
		}
		// What somebody with the key could say must be read without a panic, and
		// give a name that is one.
		if n, err := s.Read(k.Seal(useSession, said)); err == nil && (sale.CheckUser(n.User) != nil || !n.Role.Known()) {
			t.Errorf("got %+v of %q", n, said)
		}
		_ = p.Check(k.Seal(usePath, said), "alice", 7)
	})
}
