package sale

import (
	"context"
	"sync"
	"time"

	"queuelab/app/loop"
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

// NewResults makes Results; failed is told why looks do not work, once they do
// not, and nil once they do again.
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
	loop.Loop{Look: r.look, Every: pollEvery, Within: stepTimeout, Tell: r.failed}.Run(ctx)
}

func (r *Results) look(ctx context.Context) (time.Duration, error) {
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
			return 0, err
		}
		r.Decided(os...)
		ids = ids[n:]
		loop.Step(ctx)
	}
	return 0, nil
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
