package door

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"

	"queuelab/bench/broker/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m, goleak.IgnoreCurrent()) }

// client is a real Redis, the same for all tests of the package.
func client(t *testing.T) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(brokertest.Start(t, "redis", "no-persistence").URL())
	if err != nil {
		t.Fatal(err)
	}
	o.MaxRetries, o.DialerRetries, o.DisableIdentity = -1, 1, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestRates(t *testing.T) {
	for s, want := range map[string]Rate{"off": {}, "1/s": {1, time.Second}, "100/m": {100, time.Minute}, "1000000/h": {1_000_000, time.Hour}} {
		if got, err := ParseRate(s); err != nil || got != want || got.String() != s {
			t.Errorf("%s: got %v, %v", s, got, err)
		}
	}
	for _, bad := range []string{"", "10", "/s", "0/s", "-1/s", "+1/s", "01/s", "1000001/s", "1/d", "1/s/s", "1.5/s", " 1/s", "OFF"} {
		if got, err := ParseRate(bad); err == nil {
			t.Errorf("%q: got %v", bad, got)
		}
	}
}

func FuzzRates(f *testing.F) {
	f.Add("10/s")
	f.Add("off")
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := ParseRate(s); err == nil && r.String() != s {
			t.Errorf("got %v of %q", r, s)
		}
	})
}

func TestALimitLetsSoManyInAtOnceAndThenEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLocal(Rate{10, time.Second}, 100)
		for i := range 10 {
			if wait := l.Take(t.Context(), "a"); wait != 0 {
				t.Errorf("request %d: got a wait of %v", i, wait)
			}
		}
		for range 3 { // to ask in vain costs nothing
			if wait := l.Take(t.Context(), "a"); wait != 100*time.Millisecond {
				t.Errorf("got a wait of %v, want 100ms", wait)
			}
		}
		if wait := l.Take(t.Context(), "b"); wait != 0 {
			t.Errorf("got a wait of %v for another key", wait)
		}
		time.Sleep(100 * time.Millisecond)
		if wait := l.Take(t.Context(), "a"); wait != 0 {
			t.Errorf("got a wait of %v when the wait was over", wait)
		}
		if wait := l.Take(t.Context(), "a"); wait == 0 {
			t.Error("got in twice for one wait")
		}
		time.Sleep(time.Hour)
		in := 0
		for range 100 {
			if l.Take(t.Context(), "a") == 0 {
				in++
			}
		}
		if in != 10 {
			t.Errorf("got %d in after an hour, want no more than 10", in)
		}
	})
}

func TestALimitRemembersABoundedNumberAndForgetsTheIdleFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 64 * shards
		l := NewLocal(Rate{1, time.Hour}, keys)
		l.Take(t.Context(), "busy")
		for i := range 100 * keys {
			l.Take(t.Context(), fmt.Sprint(i))
			if i%8 == 0 && l.Take(t.Context(), "busy") == 0 {
				t.Fatalf("after %d others: the one that asks all the time was forgotten", i)
			}
		}
		n := 0
		for i := range l.shard {
			n += len(l.shard[i].of)
			if len(l.shard[i].of) != l.shard[i].last.Len() {
				t.Errorf("shard %d: got %d keys and %d in line", i, len(l.shard[i].of), l.shard[i].last.Len())
			}
		}
		if n > keys {
			t.Errorf("got %d keys, want at most %d", n, keys)
		}
	})
}

func TestALimitIsSharedByAllInstances(t *testing.T) {
	c := client(t)
	var in atomic.Int64
	var wg sync.WaitGroup
	log := slog.New(slog.DiscardHandler)
	for range 3 {
		l := NewShared(NewLocal(Rate{20, time.Hour}, 100), c, "x", log)
		for range 4 {
			wg.Go(func() {
				for range 10 {
					if l.Take(t.Context(), "alice") == 0 {
						in.Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
	if got := in.Load(); got != 20 {
		t.Errorf("got %d in at three instances, want 20", got)
	}
	l := NewShared(NewLocal(Rate{20, time.Hour}, 100), c, "x", log)
	if wait := l.Take(t.Context(), "alice"); wait < time.Minute || wait > 3*time.Minute {
		t.Errorf("got a wait of %v at a new instance, want about three minutes", wait)
	}
	if wait := l.Take(t.Context(), "bob"); wait != 0 {
		t.Errorf("got a wait of %v for another key", wait)
	}
	if wait := NewShared(NewLocal(Rate{20, time.Hour}, 100), c, "y", log).Take(t.Context(), "alice"); wait != 0 {
		t.Errorf("got a wait of %v for another limit", wait)
	}
	ttl, err := c.PTTL(t.Context(), "seckill:limit:x:{alice}").Result()
	if err != nil || ttl <= 0 || ttl > time.Hour+time.Second {
		t.Errorf("got a key that lives for %v, %v, want at most an hour", ttl, err)
	}
	// A clock that was set back must not lock anybody out for that long.
	if err := c.Set(t.Context(), "seckill:limit:x:{carol}", "99999999999999999", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	if wait := l.Take(t.Context(), "carol"); wait != 0 {
		t.Errorf("got a wait of %v after a clock was set back", wait)
	}
}

func TestALimitDoesNotEndTheSaleWithRedis(t *testing.T) {
	c := client(t)
	c.Close()
	l := NewShared(NewLocal(Rate{2, time.Hour}, 100), c, "x", slog.New(slog.DiscardHandler))
	in := 0
	for range 10 {
		if l.Take(t.Context(), "alice") == 0 {
			in++
		}
	}
	if in != 2 {
		t.Errorf("got %d in without Redis, want the 2 of this instance", in)
	}
}
