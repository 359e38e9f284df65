package sale

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// clock is a clock that moves only when told, or slept on.
type clock struct {
	mu    sync.Mutex
	t     time.Time
	slept time.Duration
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.t }

func (c *clock) sleep(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t, c.slept = c.t.Add(d), c.slept+d
}

func generator(t *testing.T, worker int, lease *Lease) (*Snowflake, *clock) {
	t.Helper()
	s, err := NewSnowflake(worker, lease)
	if err != nil {
		t.Fatal(err)
	}
	c := &clock{t: time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)}
	s.now, s.sleep = c.now, c.sleep
	return s, c
}

func TestSnowflakeNeverRepeatsAnIDWhoeverAsks(t *testing.T) {
	s, err := NewSnowflake(7, nil)
	if err != nil {
		t.Fatal(err)
	}
	const callers, each = 8, 5000
	got := make([][]ID, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range each {
				id, err := s.Next()
				if err != nil {
					t.Error(err)
					return
				}
				got[i] = append(got[i], id)
			}
		})
	}
	wg.Wait()
	seen := map[ID]bool{}
	for _, ids := range got {
		for j, id := range ids {
			if seen[id] {
				t.Fatalf("got id %d twice", id)
			}
			if j > 0 && id <= ids[j-1] {
				t.Fatalf("got id %d after %d, want ids that grow", id, ids[j-1])
			}
			seen[id] = true
		}
	}
}

func TestSnowflakeWaitsWhenAMillisecondIsUsedUp(t *testing.T) {
	s, c := generator(t, 0, nil)
	for range maxSequence + 2 {
		if _, err := s.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if c.slept == 0 {
		t.Errorf("got no wait after %d ids in one millisecond", maxSequence+2)
	}
}

func TestSnowflakeAndAClockThatGoesBack(t *testing.T) {
	for _, tc := range []struct {
		name string
		back time.Duration
		want error
	}{
		{"a little is waited out", 5 * time.Millisecond, nil},
		{"a lot is refused", 5 * time.Second, ErrClock},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, c := generator(t, 1, nil)
			before, err := s.Next()
			if err != nil {
				t.Fatal(err)
			}
			c.sleep(-tc.back)
			after, err := s.Next()
			if !errors.Is(err, tc.want) {
				t.Fatalf("got error %v, want %v", err, tc.want)
			}
			if err == nil && after <= before {
				t.Errorf("got id %d after %d, want a greater one", after, before)
			}
		})
	}
}

func TestSnowflakeStopsWithItsLease(t *testing.T) {
	lease := &Lease{}
	s, c := generator(t, 1, lease)
	lease.until.Store(c.now().Add(time.Second).UnixMilli())
	if _, err := s.Next(); err != nil {
		t.Fatal(err)
	}
	c.sleep(time.Second)
	if _, err := s.Next(); !errors.Is(err, ErrLease) {
		t.Errorf("got error %v, want %v", err, ErrLease)
	}
}

func TestWorkerNumbersHaveTenBits(t *testing.T) {
	for _, n := range []int{-1, MaxWorker + 1} {
		if _, err := NewSnowflake(n, nil); err == nil {
			t.Errorf("got a generator for worker number %d", n)
		}
	}
}

// leases is a LeaseStore that can be told to fail.
type leases struct {
	mu      sync.Mutex
	renewed []time.Time
	fail    error
}

func (l *leases) AcquireWorker(_ context.Context, n int, _ string, _, _ time.Time) (int, error) {
	return max(n, 3), l.fail
}

func (l *leases) RenewWorker(_ context.Context, _ int, _ string, until time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = append(l.renewed, until)
	return l.fail
}

func TestALeaseEndsWhenItIsGivenBack(t *testing.T) {
	store := &leases{}
	l, err := TakeLease(t.Context(), store, -1)
	if err != nil {
		t.Fatal(err)
	}
	if !l.holds(time.Now()) {
		t.Fatal("got a lease that does not hold")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Run(ctx, func(err error) { t.Error(err) }); err != nil {
		t.Error(err)
	}
	if l.holds(time.Now()) {
		t.Error("got a lease that holds after it was given back")
	}
	if len(store.renewed) != 1 || store.renewed[0].After(time.Now()) {
		t.Errorf("got renewals %v, want one that ends the lease", store.renewed)
	}
}

func TestALeaseAndItsRenewals(t *testing.T) {
	for name, tc := range map[string]struct {
		fail   error
		want   error
		holds  bool
		failed bool
	}{
		"renewed, it goes on":                          {nil, nil, true, false},
		"while the store is away it runs out":          {errors.New("away"), nil, false, true},
		"taken by another, it ends and that is an end": {ErrTaken, ErrTaken, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
				store := &leases{}
				l, err := TakeLease(t.Context(), store, -1)
				if err != nil {
					t.Fatal(err)
				}
				store.fail = tc.fail
				ctx, cancel := context.WithCancel(t.Context())
				failed := false
				ended := make(chan error, 1)
				go func() { ended <- l.Run(ctx, func(error) { failed = true }) }()
				time.Sleep(LeaseTTL + time.Second)
				synctest.Wait()
				if got := l.holds(time.Now()); got != tc.holds {
					t.Errorf("got held %v after its first end, want %v", got, tc.holds)
				}
				cancel()
				if err := <-ended; !errors.Is(err, tc.want) || failed != tc.failed {
					t.Errorf("got %v, failures told %v, want %v, %v", err, failed, tc.want, tc.failed)
				}
			})
		})
	}
}

func TestIDsAreStringsInJSON(t *testing.T) {
	const id = ID(9007199254740993) // 2^53 + 1: a double would say ...992
	b, err := json.Marshal(id)
	if err != nil || string(b) != `"9007199254740993"` {
		t.Fatalf("got %s, %v", b, err)
	}
	var back ID
	if err := json.Unmarshal(b, &back); err != nil || back != id {
		t.Errorf("got %d, %v, want %d", back, err, id)
	}
}

func TestWhatIsNoID(t *testing.T) {
	for _, s := range []string{"", "0", "-1", "+1", "01", " 1", "1.0", "1e3", "0x10", "9223372036854775808", "99999999999999999999999", "abc", "1\x00"} {
		if id, err := ParseID(s); err == nil {
			t.Errorf("got id %d of %q, want an error", id, s)
		}
	}
}
