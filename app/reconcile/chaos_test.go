package reconcile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"queuelab/app/admission"
	"queuelab/app/sale"
	"queuelab/queue"
)

// chaos is a sale whose every step may be the last one of its process: publishes
// are lost, decided orders are not settled, closed ones not given back.
type chaos struct {
	*lab
	queue   chan sale.Reservation
	pending atomic.Int64 // sent, and not yet done with
}

func (c *chaos) Backlog(context.Context) (queue.Backlog, error) {
	return queue.Backlog{Ready: c.pending.Load()}, nil
}

func (c *chaos) send(r sale.Reservation) {
	c.pending.Add(1)
	c.queue <- r
}

func dies() bool { return rand.IntN(4) == 0 }

func (c *chaos) buyer(ctx context.Context, n int) {
	r := c.order(fmt.Sprint(n % 60)) // some come again
	got, _, err := c.gate.Admit(ctx, r)
	if err == nil && got == sale.Admitted && !dies() {
		c.send(r)
	}
}

func (c *chaos) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-c.queue:
			c.decide(r)
			c.pending.Add(-1)
		}
	}
}

func (c *chaos) decide(r sale.Reservation) {
	if dies() {
		return
	}
	ctx := context.Background()
	ds, err := c.store.Fulfil(ctx, []sale.Reservation{r})
	if err != nil {
		c.t.Error(err)
		return
	}
	if dies() {
		return
	}
	if !ds[0].Status.Holds() {
		if _, err := c.gate.Release(ctx, r); err != nil {
			c.t.Error(err)
		}
		return
	}
	if err := c.gate.Settle(ctx, r); err != nil {
		c.t.Error(err)
	}
	if rand.IntN(3) > 0 {
		return
	}
	if _, _, err := c.store.CloseOrder(ctx, r.OrderID, sale.Cancelled, sale.ReasonByBuyer); err != nil {
		c.t.Error(err)
	}
	if !dies() {
		if _, err := c.gate.Release(ctx, r); err != nil {
			c.t.Error(err)
		}
	}
}

func TestASaleWhoseProcessesDieAtEveryStepIsPutRightWhileItRuns(t *testing.T) {
	const stock, clicks = 40, 400
	c := &chaos{lab: newLab(t, admission.NewMemory(nil), stock), queue: make(chan sale.Reservation, 10_000)}
	c.r.Repair, c.r.Backlog = true, c
	c.r.Publish = func(_ context.Context, r sale.Reservation) error { c.send(r); return nil }
	ctx, cancel := context.WithCancel(context.Background())
	var workers, buyers sync.WaitGroup
	t.Cleanup(func() { cancel(); workers.Wait() })
	for range 2 {
		workers.Go(func() { c.work(ctx) })
	}
	var n atomic.Int64
	for range 4 {
		buyers.Go(func() {
			for i := n.Add(1); i <= clicks; i = n.Add(1) {
				c.buyer(ctx, int(i))
				time.Sleep(time.Millisecond) // clicks come while it is put right
			}
		})
	}
	sold := make(chan struct{})
	go func() { buyers.Wait(); close(sold) }()
	deadline := time.Now().Add(30 * time.Second)
	for {
		over := false
		select {
		case <-sold:
			over = c.pending.Load() == 0 // before the look, which is of all then
		default:
		}
		s := c.once()
		for _, d := range s.Drift {
			if d.Kind.Sure() {
				t.Fatalf("got %v, want a database that never contradicts itself", d)
			}
		}
		if over && len(s.Found) == 0 && s.Waiting == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %v and %d waiting, want all put right within 30 s", s.Found, s.Waiting)
		}
		time.Sleep(2 * time.Millisecond)
	}
	// A full look: the quick one trusts numbers.
	c.r.Strict = true
	s := c.once()
	a := s.Accounts[0]
	if len(s.Found) != 0 || a.Gate.Left != a.Left || a.Gate.Buyers != a.Held() || a.Left+a.Held() != stock {
		t.Errorf("got %+v at the gate, %d left and %d held in the database, found %v", a.Gate, a.Left, a.Held(), s.Found)
	}
	if len(s.Done) == 0 {
		t.Error("got nothing put right, want a sale in which something died")
	}
	t.Logf("put right: %v", s.Done)
}
