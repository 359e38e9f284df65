// Package worker turns queued reservations into orders: it takes messages,
// decides them in one database transaction, and acks after the commit. Its
// rescan closes the gap between the gate and the queue.
package worker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/app/trace"
	"queuelab/queue"
)

// Store is what the worker needs of the database; see store.Store.
type Store interface {
	Fulfil(ctx context.Context, rs []sale.Reservation) ([]sale.Decision, error)
	GiveUp(ctx context.Context, r sale.Reservation, message string, body []byte, reason, cause string) (sale.Order, error)
	Orders(ctx context.Context, ids ...sale.ID) ([]sale.Order, error)
	BeginAttempt(ctx context.Context, messages ...string) (store.Attempt, error)
	EndAttempt(ctx context.Context, a store.Attempt, failed ...string) error
	CountAttempts(ctx context.Context, messages ...string) (map[string]int, error)
	ForgetAttempts(ctx context.Context, messages ...string) error
	DeadLetter(ctx context.Context, message string, body []byte, reason string) error
}

// Meter is told how the work goes, for metrics. It must be fast and safe for
// concurrent use.
type Meter interface {
	// Took: the orders of a batch are in this process' hands.
	Took(rs []sale.Reservation)
	// Committed: so many orders were decided in one transaction.
	Committed(orders int, took time.Duration)
	// GaveUp: a message became a dead letter.
	GaveUp()
	// Expired: so many orders were cancelled because nobody paid in time.
	Expired(orders int)
}

// Worker decides orders.
type Worker struct {
	Store    Store
	Gate     sale.Gate
	Results  *sale.Results
	Observer sale.Observer
	Meter    Meter         // nil: nobody counts
	Tracer   *trace.Tracer // nil: nobody traces
	Log      *slog.Logger

	Lanes       int // batches at the same time
	Batch       int // most orders in one transaction
	MaxAttempts int
	Drain       time.Duration // how long running batches may take after a stop
}

// stepTimeout bounds a step at the gate after a commit.
const stepTimeout = 3 * time.Second

// linger is how long a batch waits for more orders while others are decided. All
// transactions of a hot sale meet at the row of its stock, so that many small ones
// would only wait for each other's disk.
const linger = 5 * time.Millisecond

// Trust is how long what the database said of an order is told to the gate as it
// was. Whoever was held up for longer looks again: the order may be closed.
const Trust = 10 * time.Second

// Run works until ctx ends, and then finishes what it has taken.
func (w *Worker) Run(ctx context.Context, c queue.Consumer, caps queue.Capabilities) error {
	qw := &queue.Worker{
		Consumer:     c,
		Handle:       w.handle,
		Lanes:        w.Lanes,
		Batch:        w.Batch,
		Linger:       linger,
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

func (w *Worker) counter(caps queue.Capabilities) func(context.Context, []*queue.Delivery) ([]int, func(context.Context, []*queue.Delivery) error, error) {
	if !countsInStore(caps) {
		return nil
	}
	noted := func(d *queue.Delivery) bool { return caps.Attempts != queue.FlaggedByBroker || d.Attempt > 1 }
	return func(ctx context.Context, batch []*queue.Delivery) ([]int, func(context.Context, []*queue.Delivery) error, error) {
		var a store.Attempt
		err := w.patiently(ctx, func() (err error) {
			a, err = w.Store.BeginAttempt(ctx, names(batch, noted)...)
			return err
		})
		ns := make([]int, len(batch))
		for i, d := range batch {
			ns[i] = 1
			if noted(d) {
				ns[i] = a.Number(d.ID)
				if caps.Attempts == queue.FlaggedByBroker {
					ns[i]++ // the first delivery was not written down
				}
			}
		}
		return ns, func(ctx context.Context, failed []*queue.Delivery) error {
			return w.patiently(ctx, func() error { return w.Store.EndAttempt(ctx, a, names(failed, noted)...) })
		}, err
	}
}

// names are the ids of those deliveries of a batch.
func names(batch []*queue.Delivery, which func(*queue.Delivery) bool) []string {
	ids := make([]string, 0, len(batch))
	for _, d := range batch {
		if which(d) {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

// handle decides the orders of a batch.
func (w *Worker) handle(ctx context.Context, batch []*queue.Delivery) (errs []error) {
	ctx, span := w.Tracer.Batch(ctx, "decide", len(batch), func(i int) trace.Carrier {
		return trace.Carrier{ID: batch[i].ID, Headers: batch[i].Headers}
	})
	defer func() { span.End(errors.Join(errs...)) }()
	errs = make([]error, len(batch))
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
	if w.Meter != nil {
		w.Meter.Took(rs)
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
	w.Log.ErrorContext(ctx, "a message was given up", "message", d.ID, "error", cause)
	if w.Meter != nil {
		w.Meter.GaveUp()
	}
	return w.patiently(ctx, func() error { return w.Store.DeadLetter(ctx, letterID(d), d.Body, cause.Error()) })
}

// letterID names a message that has no name, so that two of them are two.
func letterID(d *queue.Delivery) string {
	if d.ID != "" {
		return d.ID
	}
	return fmt.Sprintf("unnamed-%x", sha256.Sum256(d.Body))
}

// decide commits the decisions and makes them known. A panic is an error here
// already, so that it does not take the others of the batch with it.
func (w *Worker) decide(ctx context.Context, rs []sale.Reservation) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("deciding %d orders panicked: %v\n%s", len(rs), p, debug.Stack())
		}
	}()
	var ds []sale.Decision
	var asOf time.Time
	err = w.patiently(ctx, func() (err error) {
		asOf = time.Now()
		tctx, span := w.Tracer.Within(ctx, "transaction", trace.Client)
		ds, err = w.Store.Fulfil(tctx, rs)
		span.End(err)
		return err
	})
	if err != nil {
		return err
	}
	if w.Meter != nil && len(rs) > 0 {
		w.Meter.Committed(len(rs), time.Since(asOf))
	}
	w.decided(ctx, asOf, ds...)
	return nil
}

// decided makes committed decisions known to the gate and to those who wait.
// What fails here is only logged: the mark stays, and the rescan does it again.
func (w *Worker) decided(ctx context.Context, asOf time.Time, ds ...sale.Decision) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	orders := make([]sale.Order, len(ds))
	for i, d := range ds {
		orders[i] = d.Order
		if !d.Again {
			w.Observer.Decided(d.Order, time.Since(time.UnixMilli(d.AtMillis)))
		}
		if w.Log.Enabled(ctx, slog.LevelDebug) {
			w.Log.DebugContext(ctx, "decided", "order", d.OrderID, "message", d.OrderID, "voucher", d.VoucherID, "status", d.Status, "reason", d.Reason, "again", d.Again)
		}
	}
	if err := reconcile(ctx, w.Gate, w.Store, orders, asOf); err != nil {
		w.Log.Warn("decided orders keep their marks for now", "error", err)
	}
	w.Results.Decided(orders...)
}

// reconcile brings the gate in line with what the database had decided at asOf.
// Doing so again changes nothing.
//
// An order that was closed since then may have its unit taken again here, after
// it was given back. The sweep, which gives it back twice with a pause that is
// longer than Trust, is then still to come; and whoever is later than that, such
// as a process that was frozen, looks again himself.
func reconcile(ctx context.Context, gate sale.Gate, s Store, orders []sale.Order, asOf time.Time) error {
	if err := tell(ctx, gate, orders); err != nil || time.Since(asOf) < Trust {
		return err
	}
	ids := make([]sale.ID, len(orders))
	for i, o := range orders {
		ids[i] = o.OrderID
	}
	now, err := s.Orders(ctx, ids...)
	if err != nil {
		return err
	}
	return tell(ctx, gate, now)
}

func tell(ctx context.Context, gate sale.Gate, orders []sale.Order) error {
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

// deadLetter is called once the attempts are used up. It tries once more first,
// by itself: attempts are also used up by an outage of the database, or with a
// neighbour that kills the process, and that is no reason to fail anybody's
// order. That try is noted while it lasts, so that what kills the process is not
// tried for ever.
func (w *Worker) deadLetter(ctx context.Context, d *queue.Delivery, cause error) error {
	r, err := sale.DecodeReservation(d.Body)
	if err != nil {
		if err = w.keep(ctx, d, err); err == nil {
			err = w.forget(ctx, d.ID)
		}
		return err
	}
	var tries map[string]int
	last := store.LastTry(d.ID)
	err = w.patiently(ctx, func() (err error) {
		tries, err = w.Store.CountAttempts(ctx, last)
		return err
	})
	if err != nil {
		return err
	}
	if tries[last] == 1 {
		err = w.decide(ctx, []sale.Reservation{r})
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, w.forget(context.WithoutCancel(ctx), d.ID, last))
		}
		cause = fmt.Errorf("%w; the last attempt: %w", cause, err)
	}
	w.Log.ErrorContext(ctx, "a message was given up", "message", d.ID, "order", r.OrderID, "voucher", r.VoucherID, "error", cause)
	if w.Meter != nil {
		w.Meter.GaveUp()
	}
	var o sale.Order
	var asOf time.Time
	err = w.patiently(ctx, func() (err error) {
		asOf = time.Now()
		o, err = w.Store.GiveUp(ctx, r, letterID(d), d.Body, sale.ReasonUndeliverable, cause.Error())
		return err
	})
	if err != nil && ctx.Err() == nil {
		// Not even that: an operator must look at it, and discard it.
		w.Log.Error("an order could not be failed", "order", r.OrderID, "error", err)
		err = w.keep(ctx, d, fmt.Errorf("%w; to fail the order: %w", cause, err))
		return errors.Join(err, w.forget(ctx, d.ID, last))
	}
	if err != nil {
		return err
	}
	w.decided(ctx, asOf, sale.Decision{Order: o})
	return w.forget(ctx, d.ID, last)
}

// forget removes the attempts of what is done.
func (w *Worker) forget(ctx context.Context, ids ...string) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return w.Store.ForgetAttempts(ctx, ids...)
}

// patiently repeats what fails because the database is away, until ctx ends:
// giving the message back would only use up its attempts.
func (w *Worker) patiently(ctx context.Context, do func() error) error {
	for try := 0; ; try++ {
		err := do()
		if err == nil || !store.Transient(err) || ctx.Err() != nil {
			return err
		}
		if store.Misfit(err) {
			w.Log.Error("orders wait until the database is put right: its schema or its rights are not those of this version", "error", err)
		} else {
			w.Log.Warn("waiting for the database", "error", err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(backoff(try)):
		}
	}
}
