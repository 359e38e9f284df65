package lessons

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"queuelab/app/sale"
	"queuelab/bench/learn"
	"queuelab/queue"
)

// tempo has buyers click, 25 at a time, and measures how soon they have an answer
// and an order.
type tempo struct {
	stand     *learn.Stand
	gate      *gate
	store     *database
	publisher queue.Publisher
	consumer  queue.Consumer
}

const atATime = 25

// pace is what was measured.
type pace struct {
	clicks, orders []time.Duration
	took           time.Duration
}

func (p *pace) add(more pace) {
	p.clicks, p.orders, p.took = append(p.clicks, more.clicks...), append(p.orders, more.orders...), p.took+more.took
}

func median(ds []time.Duration) time.Duration { return slices.Sorted(slices.Values(ds))[len(ds)/2] }

func (p pace) click() time.Duration { return median(p.clicks) }
func (p pace) order() time.Duration { return median(p.orders) }
func (p pace) rate() float64        { return float64(len(p.orders)) / p.took.Seconds() }

// rush has buyers click until there are so many orders, and wants each to succeed.
func (t *tempo) rush(orders int, click func(r sale.Reservation) error) (took []time.Duration) {
	var mu sync.Mutex
	wanted := make(chan struct{}, orders)
	for range orders {
		wanted <- struct{}{}
	}
	close(wanted)
	t.stand.Together(atATime, func(int) error {
		for range wanted {
			n := t.gate.orders.Load() + 1
			r := t.gate.order("")
			r.UserID = fmt.Sprintf("buyer%d-%d-%s", n, r.OrderID, t.stand.ID)
			began := time.Now()
			if err := click(r); err != nil {
				return err
			}
			mu.Lock()
			took = append(took, time.Since(began))
			mu.Unlock()
		}
		return nil
	})
	return took
}

// direct is without a queue.
func (t *tempo) direct(orders int) (p pace) {
	began := time.Now()
	p.clicks = t.rush(orders, func(r sale.Reservation) error {
		_, err := t.store.decide(t.stand.Context(), r)
		return err
	})
	p.orders, p.took = p.clicks, time.Since(began)
	return p
}

// queued is with a queue, and at most so many orders in a transaction.
func (t *tempo) queued(orders, most int) (p pace) {
	ctx := t.stand.Context()
	var mu sync.Mutex
	at := map[sale.ID]time.Time{}
	hands := make(chan []*queue.Delivery)
	failed := make(chan error, atATime+1)
	lanes := atATime
	if most > 1 {
		lanes = 1
	}
	var consuming sync.WaitGroup
	for range lanes {
		consuming.Go(func() {
			for ds := range hands {
				rs := make([]sale.Reservation, len(ds))
				for i, d := range ds {
					if err := json.Unmarshal(d.Body, &rs[i]); err != nil {
						failed <- err
					}
				}
				if _, err := t.store.Fulfil(ctx, rs); err != nil {
					failed <- err
				}
				now := time.Now()
				mu.Lock()
				for _, r := range rs {
					p.orders = append(p.orders, now.Sub(at[r.OrderID]))
				}
				mu.Unlock()
				if err := t.consumer.Ack(ctx, ds...); err != nil {
					failed <- err
				}
			}
		})
	}
	consuming.Go(func() {
		defer close(hands)
		for got := 0; got < orders; {
			ds, err := t.consumer.Receive(ctx, most)
			if err != nil {
				failed <- err
				return
			}
			got += len(ds)
			hands <- ds
		}
	})
	began := time.Now()
	p.clicks = t.rush(orders, func(r sale.Reservation) error {
		mu.Lock()
		at[r.OrderID] = time.Now()
		mu.Unlock()
		body, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return t.publisher.Publish(ctx, queue.Message{ID: t.stand.ID + "-" + r.OrderID.String(), Body: body})
	})
	consuming.Wait()
	p.took = time.Since(began)
	select {
	case err := <-failed:
		t.stand.Must(err)
	default:
	}
	return p
}
