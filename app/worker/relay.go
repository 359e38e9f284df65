package worker

import (
	"context"
	"log/slog"
	"time"

	"queuelab/app/loop"
	"queuelab/app/sale"
)

const (
	relayEvery = 250 * time.Millisecond
	relayBatch = 256
)

// RelayStore is what the relay needs of the database; see store.Store.
type RelayStore interface {
	Store
	Relay(ctx context.Context, max int) (decided []sale.Order, did int, err error)
}

// Relay goes on with orders that were left between two databases: whoever was
// deciding them died, or the database of the stock was away.
type Relay struct {
	Store   RelayStore
	Gate    sale.Gate
	Results *sale.Results
	Log     *slog.Logger
}

// Run relays until ctx ends.
func (r *Relay) Run(ctx context.Context) {
	look := func(ctx context.Context) (time.Duration, error) { return 0, r.Once(ctx) }
	loop.Loop{Look: look, Every: relayEvery, Tell: loop.Say(r.Log, "orders wait for the database of the stock")}.Run(ctx)
}

// Once does all that is due.
func (r *Relay) Once(ctx context.Context) error {
	for {
		asOf := time.Now()
		decided, did, err := r.Store.Relay(ctx, relayBatch)
		if err != nil {
			return err
		}
		if len(decided) > 0 {
			r.Log.Info("orders that were left between two databases are decided", "orders", len(decided))
			if err := reconcile(ctx, r.Gate, r.Store, decided, asOf); err != nil {
				r.Log.Warn("decided orders keep their marks for now", "error", err)
			}
			r.Results.Decided(decided...)
		}
		if did < relayBatch {
			return nil
		}
		loop.Step(ctx)
	}
}
