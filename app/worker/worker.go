// Package worker turns queued reservations into orders: it takes messages,
// decides them in one database transaction, and acks after the commit. Its
// rescan closes the gap between the gate and the queue.
package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/queue"
)

// Store is what the worker needs of the database; see store.Store.
type Store interface {
	Fulfil(ctx context.Context, rs []sale.Reservation) ([]sale.Decision, error)
	Fail(ctx context.Context, r sale.Reservation, reason string) (sale.Order, error)
	Orders(ctx context.Context, ids ...sale.ID) ([]sale.Order, error)
	CountAttempt(ctx context.Context, message string) (int, error)
	ForgetAttempts(ctx context.Context, messages ...string) error
	DeadLetter(ctx context.Context, message string, body []byte, reason string) error
}

// ReasonUndeliverable: every attempt to decide the order failed.
const ReasonUndeliverable = "undeliverable"

// Worker decides orders.
type Worker struct {
	Store    Store
	Gate     sale.Gate
	Results  *sale.Results
	Observer sale.Observer
	Log      *slog.Logger

	Lanes       int // batches at the same time
	Batch       int // most orders in one transaction
	MaxAttempts int
	Drain       time.Duration // how long running batches may take after a stop
}

// stepTimeout bounds a step at the gate after a commit.
const stepTimeout = 3 * time.Second

// Run works until ctx ends, and then finishes what it has taken.
func (w *Worker) Run(ctx context.Context, c queue.Consumer, caps queue.Capabilities) error {
	qw := &queue.Worker{
		Consumer:     c,
		Handle:       w.handler(caps),
		Lanes:        w.Lanes,
		Batch:        w.Batch,
		MaxAttempts:  w.MaxAttempts,
		Attempts:     w.counter(caps),
		DeadLetter:   w.deadLetter,
		Backoff:      backoff,
		DrainTimeout: w.Drain,
		OnError:      func(err error) { w.Log.Warn("worker", "error", err) },
	}
	if err := qw.Run(ctx); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}

func backoff(attempt int) time.Duration {
	return min(50*time.Millisecond<<min(attempt, 10), 5*time.Second)
}

// countsInStore: a queue that delivers again without counting would bring a
// message that kills its handler for ever.
func countsInStore(caps queue.Capabilities) bool {
	return caps.Guarantee == queue.AtLeastOnce && caps.Attempts != queue.CountedByBroker
}

func (w *Worker) counter(caps queue.Capabilities) func(context.Context, *queue.Delivery) (int, error) {
	if !countsInStore(caps) {
		return nil
	}
	return func(ctx context.Context, d *queue.Delivery) (n int, err error) {
		if caps.Attempts == queue.FlaggedByBroker && d.Attempt == 1 {
			return 1, nil
		}
		err = w.patiently(ctx, func() error {
			n, err = w.Store.CountAttempt(ctx, d.ID)
			return err
		})
		if caps.Attempts == queue.FlaggedByBroker {
			n++ // the first delivery was not written down
		}
		return n, err
	}
}

func (w *Worker) handler(caps queue.Capabilities) func(context.Context, []*queue.Delivery) []error {
	return func(ctx context.Context, batch []*queue.Delivery) []error {
		errs := w.handle(ctx, batch)
		if countsInStore(caps) {
			var done []string
			for i, d := range batch {
				if errs == nil || errs[i] == nil {
					done = append(done, d.ID)
				}
			}
			if err := w.Store.ForgetAttempts(ctx, done...); err != nil {
				w.Log.Warn("worker", "error", err)
			}
		}
		return errs
	}
}

func (w *Worker) handle(ctx context.Context, batch []*queue.Delivery) []error {
	errs := make([]error, len(batch))
	rs := make([]sale.Reservation, 0, len(batch))
	at := make([]int, 0, len(batch))
	for i, d := range batch {
		r, err := sale.DecodeReservation(d.Body)
		if err == nil {
			rs, at = append(rs, r), append(at, i)
			continue
		}
		// No attempt will ever read it; it says no order that could be failed.
		errs[i] = w.keep(ctx, d, err)
	}
	err := w.decide(ctx, rs)
	if err == nil {
		return errs
	}
	for j, i := range at {
		errs[i] = err
		if len(rs) > 1 && ctx.Err() == nil {
			// One bad order must not take the others with it.
			errs[i] = w.decide(ctx, rs[j:j+1])
		}
	}
	return errs
}

func (w *Worker) keep(ctx context.Context, d *queue.Delivery, cause error) error {
	w.Log.Error("a message was given up", "message", d.ID, "error", cause)
	return w.patiently(ctx, func() error { return w.Store.DeadLetter(ctx, d.ID, d.Body, cause.Error()) })
}

// decide commits the decisions and makes them known.
func (w *Worker) decide(ctx context.Context, rs []sale.Reservation) error {
	var ds []sale.Decision
	err := w.patiently(ctx, func() (err error) {
		ds, err = w.Store.Fulfil(ctx, rs)
		return err
	})
	if err != nil {
		return err
	}
	w.decided(ctx, ds...)
	return nil
}

// decided makes committed decisions known to the gate and to those who wait.
// What fails here is only logged: the mark stays, and the rescan does it again.
func (w *Worker) decided(ctx context.Context, ds ...sale.Decision) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	orders := make([]sale.Order, len(ds))
	for i, d := range ds {
		orders[i] = d.Order
		if !d.Again {
			w.Observer.Decided(d.Order, time.Since(time.UnixMilli(d.AtMillis)))
		}
	}
	if err := reconcile(ctx, w.Gate, orders); err != nil {
		w.Log.Warn("decided orders keep their marks for now", "error", err)
	}
	w.Results.Decided(orders...)
}

// reconcile brings the gate in line with what the database decided. Doing so
// again changes nothing.
func reconcile(ctx context.Context, gate sale.Gate, orders []sale.Order) error {
	var confirmed []sale.Reservation
	for _, o := range orders {
		if o.Status.Holds() {
			confirmed = append(confirmed, o.Reservation)
		} else if _, err := gate.Release(ctx, o.Reservation); err != nil {
			return err
		}
	}
	return gate.Settle(ctx, confirmed...)
}

// deadLetter is called once the attempts are used up. It tries once more
// first: attempts are also used up by an outage of the database, and that is
// no reason to fail anybody's order.
func (w *Worker) deadLetter(ctx context.Context, d *queue.Delivery, cause error) error {
	r, err := sale.DecodeReservation(d.Body)
	if err != nil {
		return w.keep(ctx, d, err)
	}
	err = w.decide(ctx, []sale.Reservation{r})
	if err == nil || ctx.Err() != nil {
		return err
	}
	if err := w.keep(ctx, d, fmt.Errorf("%w; the last attempt: %w", cause, err)); err != nil {
		return err
	}
	var o sale.Order
	err = w.patiently(ctx, func() (err error) {
		o, err = w.Store.Fail(ctx, r, ReasonUndeliverable)
		return err
	})
	if err != nil {
		return err
	}
	w.decided(ctx, sale.Decision{Order: o})
	return w.Store.ForgetAttempts(ctx, d.ID)
}

// patiently repeats what fails because the database is away, until ctx ends:
// giving the message back would only use up its attempts.
func (w *Worker) patiently(ctx context.Context, do func() error) error {
	for try := 0; ; try++ {
		err := do()
		if err == nil || !store.Transient(err) || ctx.Err() != nil {
			return err
		}
		w.Log.Warn("waiting for the database", "error", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(backoff(try)):
		}
	}
}
