package sale

import (
	"context"
	"sync"
	"time"
)

const (
	pollEvery = 300 * time.Millisecond
	pollBatch = 500
)

// Results wakes those who wait for an order's decision: at once when this
// process decided it, and from one shared look into the database otherwise,
// because another instance may have. So a thousand waiting buyers cost a few
// queries a second.
type Results struct {
	store  Store
	failed func(error)

	mu      sync.Mutex
	waiting map[ID]map[chan Order]struct{}
	closed  chan struct{}
	once    sync.Once
}

// NewResults makes Results; failed is told why a look did not work.
func NewResults(store Store, failed func(error)) *Results {
	return &Results{store: store, failed: failed, waiting: map[ID]map[chan Order]struct{}{}, closed: make(chan struct{})}
}

func (r *Results) subscribe(id ID) (<-chan Order, func()) {
	ch := make(chan Order, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[id] == nil {
		r.waiting[id] = map[chan Order]struct{}{}
	}
	r.waiting[id][ch] = struct{}{}
	return ch, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.waiting[id], ch)
		if len(r.waiting[id]) == 0 {
			delete(r.waiting, id)
		}
	}
}

// Decided wakes whoever waits for one of the orders.
func (r *Results) Decided(os ...Order) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range os {
		for ch := range r.waiting[o.OrderID] {
			select {
			case ch <- o:
			default: // it has its answer already
			}
		}
	}
}

// Run looks for decisions of other instances until ctx ends.
func (r *Results) Run(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := r.look(ctx); err != nil && ctx.Err() == nil {
			r.failed(err)
		}
	}
}

func (r *Results) look(ctx context.Context) error {
	r.mu.Lock()
	ids := make([]ID, 0, len(r.waiting))
	for id := range r.waiting {
		ids = append(ids, id)
	}
	r.mu.Unlock()
	for len(ids) > 0 {
		n := min(len(ids), pollBatch)
		os, err := r.store.Orders(ctx, ids[:n]...)
		if err != nil {
			return err
		}
		r.Decided(os...)
		ids = ids[n:]
	}
	return nil
}

// Close answers everybody who waits with what is known, and whoever comes
// later at once.
func (r *Results) Close() { r.once.Do(func() { close(r.closed) }) }

// Waiting counts the orders whose decision somebody waits for here.
func (r *Results) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)
}
