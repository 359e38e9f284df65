package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"queuelab/app/sale"
)

// Transactions that have every connection, and others that wait for one, all with
// statements that the database has not seen yet.
func TestNobodyWaitsForEverWhereConnectionsAreFew(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		v := voucher(t, s, 10_000)
		const sizes = 25
		var wg sync.WaitGroup
		for w := range 3 {
			wg.Go(func() {
				for n := 1; n <= sizes; n++ {
					ids := make([]sale.ID, n)
					for i := range ids {
						ids[i] = id()
					}
					if err := s.GivenBack(t.Context(), ids...); err != nil {
						t.Error(err)
					}
				}
			})
			wg.Go(func() {
				for n := 1; n <= sizes; n++ {
					rs := make([]sale.Reservation, n)
					for i := range rs {
						rs[i] = reservation(v, fmt.Sprint(w, "-", n, "-", i))
					}
					if _, err := s.Fulfil(t.Context(), rs); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(60 * time.Second):
			t.Fatal("still waiting after a minute")
		}
	})
}
