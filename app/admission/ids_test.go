package admission_test

import (
	"sync"
	"testing"
	"time"

	"queuelab/app/admission"
	"queuelab/app/sale"
)

// some makes so many ids, of as many goroutines as counters.
func some(t *testing.T, n int, ids ...sale.IDs) []sale.ID {
	t.Helper()
	got := make([][]sale.ID, len(ids))
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			for range n {
				id, err := ids[i].Next()
				if err != nil {
					t.Error(err)
					return
				}
				got[i] = append(got[i], id)
			}
		})
	}
	wg.Wait()
	var all []sale.ID
	for _, g := range got {
		for i := 1; i < len(g); i++ {
			if g[i] == g[i-1] {
				t.Errorf("got id %v twice running", g[i])
			}
		}
		all = append(all, g...)
	}
	return all
}

func wantNew(t *testing.T, seen map[sale.ID]bool, ids []sale.ID) {
	t.Helper()
	for _, id := range ids {
		if id <= 0 || seen[id] {
			t.Fatalf("got id %v again, or none", id)
		}
		seen[id] = true
	}
}

func TestCountedIDsAreUniqueAndInOrder(t *testing.T) {
	g, _ := gate(t)
	one := g.IDs()
	seen := map[sale.ID]bool{}
	// Four goroutines share one counter, two have others.
	wantNew(t, seen, some(t, 2000, one, one, one, one, g.IDs(), g.IDs()))
	last := sale.ID(0)
	for _, id := range some(t, 3000, one) {
		if id <= last {
			t.Fatalf("got %v after %v", id, last)
		}
		last = id
	}
	// What another instance makes a block's time later is greater.
	snow, err := sale.NewSnowflake(sale.MaxWorker, nil)
	if err != nil {
		t.Fatal(err)
	}
	id, err := snow.Next()
	if err != nil {
		t.Fatal(err)
	}
	if d := (id - last) >> 22; d < -1000 || d > 1000 {
		t.Errorf("a snowflake is %d ms away from a counted id, want about 0", d)
	}
}

func TestARedisThatLostItsCounterRepeatsNoID(t *testing.T) {
	g, c := gate(t)
	seen := map[sale.ID]bool{}
	one := g.IDs()
	for range 5 {
		// As a restart of Redis without its data, and of the service.
		wantNew(t, seen, some(t, 600, one, g.IDs()))
		before := c.Time(t.Context()).Val()
		if err := c.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "time passes, as with every restart", func() bool { return c.Time(t.Context()).Val().Sub(before) > time.Millisecond })
	}
}

// A counter that is ahead of the clock, as if the clock had gone back.
func TestAClockThatWentBackRepeatsNoID(t *testing.T) {
	g, c := gate(t)
	seen := map[sale.ID]bool{}
	ahead := time.Now().Add(time.Hour).UnixMilli()
	if err := c.HSet(t.Context(), "seckill:ids", "ms", ahead, "next", sale.MaxCount-300).Err(); err != nil {
		t.Fatal(err)
	}
	one := g.IDs()
	wantNew(t, seen, some(t, 1000, one, g.IDs()))
	last := some(t, 1, one)[0]
	// It is lost too: whoever knows an id still makes greater ones.
	if err := c.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	for _, id := range some(t, 1000, one) {
		if id <= last {
			t.Fatalf("got %v after %v", id, last)
		}
		last = id
	}
}

func TestWithoutRedisThereAreNoIDs(t *testing.T) {
	g := admission.NewRedis(client(t, "127.0.0.1:1", time.Second))
	ids := g.IDs()
	var wg sync.WaitGroup
	for range 50 { // they share the wait
		wg.Go(func() {
			if id, err := ids.Next(); err == nil {
				t.Errorf("got %v, want an error", id)
			}
		})
	}
	wg.Wait()
}
