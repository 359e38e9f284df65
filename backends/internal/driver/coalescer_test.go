package driver

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"queuelab/queue"
)

func one(int) int { return 1 }

func TestEveryCallerGetsItsOwnResults(t *testing.T) {
	largest := 0
	c := NewCoalescer(7, one, func(items, results []int) {
		largest = max(largest, len(items))
		for i, v := range items {
			results[i] = 10 * v
		}
	})
	var wg sync.WaitGroup
	for caller := range 50 {
		wg.Go(func() {
			for n := range 20 {
				items := make([]int, n) // some calls are larger than a round trip
				for i := range items {
					items[i] = caller*1000 + i
				}
				got, sent, err := c.Do(t.Context(), items)
				if err != nil || sent != n || len(got) != n {
					t.Errorf("got %d results, %d sent, %v, want %d", len(got), sent, err, n)
					return
				}
				for i := range got {
					if got[i] != 10*items[i] {
						t.Errorf("result %d of caller %d: got %d, want %d", i, caller, got[i], 10*items[i])
					}
				}
			}
		})
	}
	wg.Wait()
	c.Close(time.Minute)
	if largest > 7 {
		t.Errorf("largest round trip: got %d items, want at most 7", largest)
	}
}

func TestCallersShareARoundTripInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var trips [][]int
		c := NewCoalescer(100, one, func(items, results []int) {
			trips = append(trips, slices.Clone(items))
			<-gate
		})
		for i := range 4 {
			go c.Do(t.Context(), []int{i})
			synctest.Wait()
		}
		gate <- struct{}{}
		gate <- struct{}{}
		c.Close(time.Minute)
		if len(trips) != 2 || !slices.Equal(trips[0], []int{0}) || !slices.Equal(trips[1], []int{1, 2, 3}) {
			t.Errorf("round trips: got %v, want [[0] [1 2 3]]", trips)
		}
	})
}

func TestACallerWhoseContextEndsKnowsWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var all []int
		c := NewCoalescer(2, one, func(items, results []int) {
			all = append(all, items...)
			<-gate
		})
		ctx, cancel := context.WithCancel(t.Context())
		check := func(items []int, want int) {
			if _, sent, err := c.Do(ctx, items); !errors.Is(err, context.Canceled) || sent != want {
				t.Errorf("items %v: got %d sent, %v, want %d and context.Canceled", items, sent, err, want)
			}
		}
		go check([]int{1, 2, 3}, 2)
		synctest.Wait()
		go check([]int{4}, 0)
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(gate)
		c.Close(time.Minute)
		if !slices.Equal(all, []int{1, 2}) {
			t.Errorf("sent: got %v, want [1 2]: the rest was withdrawn", all)
		}
		if _, _, err := c.Do(t.Context(), []int{5}); !errors.Is(err, queue.ErrClosed) {
			t.Errorf("after Close: got %v, want ErrClosed", err)
		}
	})
}

func TestARoundTripIsBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var trips []int
		c := NewCoalescer(100, func(int) int { return roundTripBytes / 2 }, func(items, results []int) {
			trips = append(trips, len(items))
		})
		if _, _, err := c.Do(t.Context(), make([]int, 5)); err != nil {
			t.Fatal(err)
		}
		c.Close(time.Minute)
		if !slices.Equal(trips, []int{2, 2, 1}) {
			t.Errorf("round trips: got %v, want [2 2 1]", trips)
		}
	})
}
