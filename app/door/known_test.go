package door

import (
	"fmt"
	"log/slog"
	"testing"
)

func TestAnAccountIsKnownWhereItLoggedInLately(t *testing.T) {
	c := client(t)
	log := slog.New(slog.DiscardHandler)
	if err := c.Del(t.Context(), knownKey("alice")).Err(); err != nil { // of a run before
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ in, asked Known }{
		"at one instance": {&LocalKnown{}, nil},
		"at another one":  {&SharedKnown{Client: c, Log: log}, &SharedKnown{Client: c, Log: log}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.asked == nil {
				tc.asked = tc.in
			}
			has := func(user string, address int) bool {
				return tc.asked.Has(t.Context(), user, fmt.Sprint("10.0.0.", address))
			}
			if has("alice", 1) {
				t.Error("got a stranger known")
			}
			tc.in.Add(t.Context(), "alice", "10.0.0.1")
			if !has("alice", 1) || has("alice", 2) || has("bob", 1) {
				t.Error("got another answer than that alice alone was at the first address")
			}
			for i := range knownEach {
				tc.in.Add(t.Context(), "alice", "10.0.0.2") // again and again is one
				tc.in.Add(t.Context(), "alice", fmt.Sprint("10.0.0.", 10+i))
			}
			if has("alice", 1) || !has("alice", 2) || !has("alice", 10+knownEach-1) || has("alice", 10) {
				t.Errorf("got others known than the latest %d addresses", knownEach)
			}
		})
	}
	ttl, err := c.PTTL(t.Context(), "seckill:known:{alice}").Result()
	if err != nil || ttl <= 0 || ttl > knownFor {
		t.Errorf("got a key that lives for %v, %v, want at most %v", ttl, err, knownFor)
	}
	c.Close()
	k := &SharedKnown{Client: c, Log: log}
	k.Add(t.Context(), "alice", "10.0.0.1")
	if !k.Has(t.Context(), "alice", "10.0.0.1") || k.Has(t.Context(), "alice", "10.0.0.9") {
		t.Error("got another answer without Redis than what this instance has seen")
	}
}

func TestWhatIsRememberedOfAccountsIsBounded(t *testing.T) {
	k := &LocalKnown{}
	for i := range 3 * maxKnown {
		k.Add(t.Context(), fmt.Sprint(i), "a")
	}
	if got := len(k.young) + len(k.aged); got > 2*maxKnown || !k.Has(t.Context(), fmt.Sprint(3*maxKnown-1), "a") {
		t.Errorf("got %d accounts remembered, want at most %d and the last one among them", got, 2*maxKnown)
	}
}
