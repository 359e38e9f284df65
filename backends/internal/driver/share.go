package driver

import (
	"context"
	"errors"
	"fmt"

	"queuelab/queue"
)

// Publish sends items, one for each message, in one round trip with whoever
// publishes at the same time. of tells what became of a message by its result. The
// error is as queue.Publisher wants it: nil when all were accepted.
func Publish[T, R any](ctx context.Context, op string, with *Coalescer[T, R], items []T, of func(R) (queue.Outcome, error)) ([]R, error) {
	results, sent, err := with.Do(ctx, items)
	switch {
	case errors.Is(err, queue.ErrClosed):
		return nil, err
	case err != nil: // ctx ended
		return nil, Outcomes(op, len(items), func(i int) (queue.Outcome, error) {
			if i < sent {
				return queue.Unknown, err
			}
			return queue.Rejected, queue.Reject(err)
		})
	}
	return results, Outcomes(op, len(items), func(i int) (queue.Outcome, error) { return of(results[i]) })
}

// Outcomes is what a publish of n messages returns: nil when of has no error for
// any of them, and otherwise one outcome for each, with the first error.
func Outcomes(op string, n int, of func(i int) (queue.Outcome, error)) error {
	var pe *queue.PublishError
	for i := range n {
		outcome, err := of(i)
		if err == nil {
			continue
		}
		if pe == nil {
			pe = &queue.PublishError{Outcomes: make([]queue.Outcome, n), Err: fmt.Errorf("%s: %w", op, err)}
		}
		pe.Outcomes[i] = outcome
	}
	if pe == nil {
		return nil
	}
	return pe
}

// Receive makes deliveries of what a puller reads, in two allocations for all. of
// tells the message of each, and its attempt; what was read is the receipt.
func Receive[T any](ctx context.Context, p *Puller[T], most int, of func(T) (queue.Message, int)) ([]*queue.Delivery, error) {
	got, err := p.Receive(ctx, most)
	if err != nil {
		return nil, err
	}
	all, ds := make([]queue.Delivery, len(got)), make([]*queue.Delivery, len(got))
	for i, t := range got {
		m, attempt := of(t)
		all[i].Init(m, attempt, t)
		ds[i] = &all[i]
	}
	return ds, nil
}

// Receipts are those of deliveries. One that mine does not know as the consumer's
// own is an error.
func Receipts[T any](ds []*queue.Delivery, mine func(T) bool) ([]T, error) {
	ts := make([]T, len(ds))
	for i, d := range ds {
		t, ok := d.Receipt().(T)
		if !ok || !mine(t) {
			return nil, fmt.Errorf("settle: message %s was delivered by another consumer", d.ID)
		}
		ts[i] = t
	}
	return ts, nil
}

// Settle settles deliveries in one round trip with whoever settles at the same
// time, each by its receipt. It is called within queue.Settle. When ctx ends first,
// unsure are the receipts that may have been settled; the others were not.
func Settle[T any](ctx context.Context, with *Coalescer[T, error], ds []*queue.Delivery, mine func(T) bool) (unsure []T, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ts, err := Receipts(ds, mine)
	if err != nil {
		return nil, err
	}
	errs, sent, err := with.Do(ctx, ts)
	if err != nil {
		return ts[:sent], err
	}
	return nil, Each(errs)
}

// Each is nil when every error is, and otherwise a *queue.SettleError of them.
func Each(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return &queue.SettleError{Errs: errs}
		}
	}
	return nil
}
