package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"queuelab/app/loop"
	"queuelab/app/sale"
	"queuelab/queue"
)

// rescanBatch bounds the marks looked at in one step.
const rescanBatch = 256

// Rescan looks after the orders that were admitted and are not known to be
// committed: the service died between the gate and the queue, a publish had no
// answer, a consumer of an at-most-once queue died. It publishes them again
// under the same id, or clears the mark of what the database has decided. The
// database makes the effect of each order unique, so doing it once too often
// is harmless.
type Rescan struct {
	Gate     sale.Gate
	Store    Store
	Vouchers func(ctx context.Context, asOf time.Time) ([]sale.ID, error) // see sale.Loader
	Outbox   *sale.Outbox
	Results  *sale.Results
	Log      *slog.Logger
	Age      time.Duration // how old a mark must be; then twice as long each time
}

// Run rescans until ctx ends.
func (s *Rescan) Run(ctx context.Context) {
	look := func(ctx context.Context) (time.Duration, error) { return 0, s.Once(ctx) }
	loop.Loop{Look: look, Every: max(s.Age/4, 50*time.Millisecond), Tell: loop.Say(s.Log, "orders without an answer are not looked after")}.Run(ctx)
}

// Once looks at every mark that is due.
func (s *Rescan) Once(ctx context.Context) error {
	vouchers, err := s.Vouchers(ctx, time.Now())
	if err != nil {
		return fmt.Errorf("rescan: %w", err)
	}
	for _, v := range vouchers {
		for {
			n, err := s.step(ctx, v)
			if err != nil && !errors.Is(err, sale.ErrUnreadable) {
				return fmt.Errorf("rescan of voucher %s: %w", v, err)
			}
			loop.Step(ctx)
			if n < rescanBatch {
				break
			}
		}
	}
	return nil
}

func (s *Rescan) step(ctx context.Context, voucher sale.ID) (int, error) {
	// What nobody can read is the reconciler's; the others go on.
	rs, err := s.Gate.Stale(ctx, voucher, s.Age, rescanBatch)
	if err != nil && !errors.Is(err, sale.ErrUnreadable) || len(rs) == 0 {
		return 0, err
	}
	ids := make([]sale.ID, len(rs))
	for i, r := range rs {
		ids[i] = r.OrderID
	}
	asOf := time.Now()
	decided, err := s.Store.Orders(ctx, ids...)
	if err != nil {
		return 0, err
	}
	if err := reconcile(ctx, s.Gate, s.Store, decided, asOf); err != nil {
		return 0, err
	}
	s.Results.Decided(decided...)
	done := make(map[sale.ID]bool, len(decided))
	for _, o := range decided {
		done[o.OrderID] = true
	}
	again := 0
	for _, r := range rs {
		if done[r.OrderID] {
			continue
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		loop.Step(ctx) // a publish has a bound of its own
		// Whatever the outcome, the mark is due again later.
		if outcome, err := s.Outbox.Send(ctx, r, "rescan"); outcome == queue.Rejected {
			return 0, fmt.Errorf("publish order %s again: %w", r.OrderID, err)
		}
		again++
	}
	if again > 0 {
		s.Log.Info("orders were published again", "voucher", voucher, "orders", again)
	}
	return len(rs), nil
}
