package door

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestAPasswordIsKnownByItsHashOnly(t *testing.T) {
	p := NewPasswords()
	stored, err := p.Hash(t.Context(), "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.Hash(t.Context(), "correct horse")
	if err != nil || again == stored {
		t.Errorf("got the same hash twice, %v, want a salt of its own in each", err)
	}
	if !strings.HasPrefix(stored, "$argon2id$v=19$m=19456,t=2,p=1$") || strings.Contains(stored, "horse") {
		t.Errorf("got %q, want argon2id with its parameters", stored)
	}
	// Another instance, whose parameters for new hashes may differ.
	other := NewPasswords()
	other.cost = cost{memory: 64, time: 1, threads: 1}
	for _, tc := range []struct {
		name, stored, password string
		want                   bool
	}{
		{"the password", stored, "correct horse", true},
		{"another one", stored, "correct horsf", false},
		{"none", stored, "", false},
		{"of nobody", "", "correct horse", false},
		{"none of nobody", "", "", false},
	} {
		if got, err := other.Verify(t.Context(), tc.stored, tc.password); got != tc.want || err != nil {
			t.Errorf("%s: got %v, %v, want %v", tc.name, got, err, tc.want)
		}
	}
}

// Nobody's hash is one of ours, so that the work is the same.
func TestNobodysPasswordCostsAsMuchAsSomebodys(t *testing.T) {
	p := NewPasswords()
	if p.dummy.cost != defaultCost() || len(p.dummy.salt) != saltLen || len(p.dummy.sum) != hashLen {
		t.Errorf("got %+v", p.dummy)
	}
	for range cap(p.running) {
		p.running <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Verify(ctx, "", "x"); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v, want nobody's password to wait for its turn", err)
	}
}

func TestTwoHashesAreMadeAtOnceAndSixtyFourMayWait(t *testing.T) {
	p := NewPasswords()
	p.cost = cost{memory: 64, time: 1, threads: 1}
	for range 2 {
		select {
		case p.running <- struct{}{}:
		default:
			t.Fatal("got less than two places")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ended := make(chan error)
	for range inLine + 10 {
		go func() { _, err := p.Hash(ctx, "password"); ended <- err }()
	}
	for range 10 { // those that are too many do not wait
		if err := <-ended; !errors.Is(err, ErrBusy) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v at once", err, ErrBusy)
		}
	}
	<-p.running
	if err := <-ended; err != nil {
		t.Errorf("got %v for one that waited, want a hash", err)
	}
	for range inLine - 1 {
		if err := <-ended; err != nil {
			t.Errorf("got %v, want a hash for everybody in line", err)
		}
	}
	if n := p.waiting.Load(); n != 0 {
		t.Errorf("got %d in line at the end, want none", n)
	}
}

func TestAHashThatIsNotOursIsRefused(t *testing.T) {
	good := hash{cost: defaultCost(), salt: make([]byte, saltLen), sum: make([]byte, hashLen)}.String()
	if _, err := parseHash(good); err != nil {
		t.Fatalf("got %v for %s", err, good)
	}
	for name, bad := range map[string]string{
		"nothing":              "",
		"bcrypt":               "$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy",
		"another argon":        strings.Replace(good, "argon2id", "argon2i", 1),
		"another version":      strings.Replace(good, "v=19", "v=16", 1),
		"gigabytes of memory":  strings.Replace(good, "m=19456", "m=4194304", 1),
		"no memory":            strings.Replace(good, "m=19456", "m=0", 1),
		"endless passes":       strings.Replace(good, "t=2", "t=4294967295", 1),
		"a zero before":        strings.Replace(good, "t=2", "t=02", 1),
		"a sign":               strings.Replace(good, "p=1", "p=+1", 1),
		"parameters missing":   strings.Replace(good, ",p=1", "", 1),
		"parameters twice":     strings.Replace(good, ",p=1", ",p=1,p=1", 1),
		"a short salt":         strings.Replace(good, "AAAA", "", 1),
		"a short sum":          good[:len(good)-4],
		"something after":      good + "$",
		"a character too many": good + "A",
		"too long":             good + strings.Repeat("A", 300),
	} {
		if h, err := parseHash(bad); err == nil {
			t.Errorf("%s: got %+v", name, h)
			continue // it may cost hours
		}
		if ok, err := NewPasswords().Verify(t.Context(), bad, "x"); ok || bad != "" && err == nil {
			t.Errorf("%s: got %v, %v, want an error", name, ok, err)
		}
	}
}

func FuzzPasswordHash(f *testing.F) {
	f.Add(hash{cost: defaultCost(), salt: make([]byte, saltLen), sum: make([]byte, hashLen)}.String())
	f.Add("$argon2id$v=19$m=1,t=1,p=1$$")
	f.Fuzz(func(t *testing.T, s string) {
		h, err := parseHash(s)
		if err != nil {
			return
		}
		if h.String() != s || h.memory > 64<<10 || h.time > 10 || h.threads > 4 || h.time == 0 || h.threads == 0 {
			t.Errorf("got %+v of %q", h, s)
		}
	})
}

func TestAWeakPasswordIsRefused(t *testing.T) {
	for name, password := range map[string]string{"short": "1234567", "long": strings.Repeat("x", 129), "the name": "AliceAlice", "not text": "12345678\xff"} {
		if CheckPassword("alicealice", password) == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	if err := CheckPassword("alicealice", "пароль世界"); err != nil {
		t.Errorf("got %v", err)
	}
}
