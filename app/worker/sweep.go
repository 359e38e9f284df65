package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"queuelab/app/loop"
	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/queue"
)

// SweepStore is what the sweep needs of the database; see store.Store.
type SweepStore interface {
	Due(ctx context.Context) (store.Due, error)
	Expire(ctx context.Context, max int) ([]sale.Order, error)
	ToGiveBack(ctx context.Context, again time.Duration, max int) ([]store.HeldUnit, error)
	GiveBackSoon(ctx context.Context, ids ...sale.ID) error
	GivenBack(ctx context.Context, ids ...sale.ID) error
	HeldBy(ctx context.Context, rs ...sale.Reservation) ([]sale.Order, error)
	ToReplay(ctx context.Context, max int) ([]sale.DeadLetter, error)
	EndReplay(ctx context.Context, message string, to sale.LetterState) error
}

const (
	// lookEvery is the longest time between two looks. It is no longer than the
	// shortest time to pay, so that a deadline is always known before it comes.
	lookEvery = time.Second
	// lookAgain is the pause after there was something to do.
	lookAgain  = 20 * time.Millisecond
	sweepBatch = 256
)

// Sweep does what is due after an order's decision: it cancels orders whose time
// to pay has ended, gives the units of closed orders back at the gate, and
// publishes dead letters whose replay has no answer. All of it stands in the
// database, so that nothing is forgotten with a process, and any number of
// instances share it.
type Sweep struct {
	Store   SweepStore
	Gate    sale.Gate
	Outbox  *sale.Outbox
	Results *sale.Results
	Log     *slog.Logger
	Meter   Meter // nil: nobody counts
	// Again is the pause after which a unit that was given back is looked at once
	// more; it must be longer than anybody may take from reading of a confirmed
	// order to telling the gate. 0: 30 s.
	Again time.Duration
}

// Run sweeps until ctx ends.
func (s *Sweep) Run(ctx context.Context) {
	loop.Loop{Look: s.Once, Every: lookEvery, Tell: loop.Say(s.Log, "what is due after an order's decision is not done")}.Run(ctx)
}

// Once does what is due, and returns after which pause to look again: a deadline
// that is nearer than the next look is met when it comes.
func (s *Sweep) Once(ctx context.Context) (next time.Duration, err error) {
	due, err := s.Store.Due(ctx)
	if err != nil {
		return lookEvery, err
	}
	for _, step := range []struct {
		in time.Duration
		do func(context.Context) error
	}{{due.Unpaid, s.expire}, {due.GiveBack, s.giveBack}, {due.Replay, s.replay}} {
		if step.in <= 0 {
			err = errors.Join(err, step.do(ctx))
		}
	}
	if err != nil {
		return lookEvery, err
	}
	return max(lookAgain, min(lookEvery, due.Unpaid, due.GiveBack, due.Replay)), nil
}

func (s *Sweep) expire(ctx context.Context) error {
	for {
		os, err := s.Store.Expire(ctx, sweepBatch)
		if err != nil {
			return err
		}
		s.Results.Decided(os...)
		if len(os) > 0 {
			s.Log.Info("unpaid orders were cancelled", "orders", len(os))
			if s.Meter != nil {
				s.Meter.Expired(len(os))
			}
		}
		if len(os) < sweepBatch {
			return nil
		}
		loop.Step(ctx)
	}
}

// giveBack has the gate release what closed orders hold. Releasing is done once
// whatever happens: only while this very order holds the unit. An order is done
// with when it holds nothing although nobody can still say that it should.
func (s *Sweep) giveBack(ctx context.Context) error {
	again := s.Again
	if again <= 0 {
		again = 3 * Trust
	}
	for {
		units, err := s.Store.ToGiveBack(ctx, again, sweepBatch)
		if err != nil {
			return err
		}
		var done, failed []sale.ID
		var asked []sale.Reservation
		var errs error
		for _, u := range units {
			if errs != nil { // a gate that is away takes its time to say so
				failed = append(failed, u.OrderID)
				continue
			}
			released, err := s.Gate.Release(ctx, u.Reservation)
			if err != nil {
				errs, failed = err, append(failed, u.OrderID)
				continue
			}
			loop.Step(ctx)
			asked = append(asked, u.Reservation)
			if u.Cool && !released {
				done = append(done, u.OrderID)
			}
		}
		if err := s.settleNext(ctx, asked); err != nil {
			return errors.Join(errs, err)
		}
		if err := errors.Join(errs, s.Store.GivenBack(ctx, done...), s.Store.GiveBackSoon(ctx, failed...)); err != nil || len(units) < sweepBatch {
			return err
		}
	}
}

// settleNext puts the gate right where it was told too late that an order is
// confirmed, and forgot the buyer's next one for it.
func (s *Sweep) settleNext(ctx context.Context, closed []sale.Reservation) error {
	next, err := s.Store.HeldBy(ctx, closed...)
	if err != nil {
		return err
	}
	return tell(ctx, s.Gate, next)
}

func (s *Sweep) replay(ctx context.Context) error {
	ls, err := s.Store.ToReplay(ctx, sweepBatch)
	for _, l := range ls {
		loop.Step(ctx) // a publish has a bound of its own
		outcome, perr := s.Outbox.Resend(ctx, l.Message, l.Body, "replay")
		if outcome == queue.Accepted {
			perr = s.Store.EndReplay(ctx, l.Message, sale.Replayed)
		}
		err = errors.Join(err, perr)
	}
	return err
}
