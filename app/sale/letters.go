package sale

import (
	"context"
	"fmt"
	"time"

	"queuelab/queue"
)

// LetterState is what became of a dead letter.
type LetterState string

const (
	Open LetterState = "open" // nobody has done anything about it
	// Replaying: it is to be published again, and the queue has not accepted it yet.
	Replaying LetterState = "replaying"
	Replayed  LetterState = "replayed" // the queue has it again
	Discarded LetterState = "discarded"
)

// DeadLetter is a message that was given up.
type DeadLetter struct {
	Message string // its id
	Body    []byte // at most 64 KiB are kept
	Reason  string // why it was given up the last time
	At      time.Time
	Times   int // how often it was given up
	State   LetterState
	DoneBy  string    // who replayed or discarded it
	Done    time.Time // zero: nobody
	// Order is the decision of the order that the message asks for; nil where
	// there is none, or the message cannot be read.
	Order *Order
}

// LetterCode says why a message was given up, for programs.
type LetterCode string

const (
	Unreadable LetterCode = "unreadable" // nobody can read what it asks for
	Undecided  LetterCode = "undecided"  // no attempt could decide its order
)

// Code is why the message was given up; Reason is the error of the last time.
func (l DeadLetter) Code() LetterCode {
	if _, err := DecodeReservation(l.Body); err != nil {
		return Unreadable
	}
	return Undecided
}

// Letters is what the care for dead letters needs of the database.
type Letters interface {
	// Letter returns one; NotFound where there is none.
	Letter(ctx context.Context, message string) (DeadLetter, error)
	// ListLetters lists those in a state ("": in any), the highest id first,
	// those below the given one ("": all), at most max.
	ListLetters(ctx context.Context, state LetterState, below string, max int) ([]DeadLetter, error)
	// StartReplay makes an open letter Replaying, and its attempts none. It reports
	// whether this call did it.
	StartReplay(ctx context.Context, message, by string) (bool, error)
	// EndReplay makes a letter that is Replaying Replayed, or Open again.
	EndReplay(ctx context.Context, message string, to LetterState) error
	// Discard makes an open letter Discarded, and fails the order of r, if it is
	// not decided; nil r is a message that nobody can read. It reports whether
	// this call did it.
	Discard(ctx context.Context, message, by string, r *Reservation) (bool, error)
}

// DeadLetters lists dead letters for an operator, the newest orders first, each
// with the decision of its order.
func (s *Service) DeadLetters(ctx context.Context, state LetterState, below string, limit int) ([]DeadLetter, error) {
	ls, err := s.Letters.ListLetters(ctx, state, below, limit)
	if err != nil {
		return nil, err
	}
	var ids []ID
	for _, l := range ls {
		if r, err := DecodeReservation(l.Body); err == nil {
			ids = append(ids, r.OrderID)
		}
	}
	os, err := s.Store.Orders(ctx, ids...)
	if err != nil {
		return nil, err
	}
	decided := map[ID]*Order{}
	for i := range os {
		decided[os[i].OrderID] = &os[i]
	}
	for i := range ls {
		if r, err := DecodeReservation(ls[i].Body); err == nil {
			ls[i].Order = decided[r.OrderID]
		}
	}
	return ls, nil
}

// letter finds a dead letter, what its message asks for (nil: nobody can read
// it), and the decision of that.
func (s *Service) letter(ctx context.Context, message string) (l DeadLetter, r *Reservation, err error) {
	if l, err = s.Letters.Letter(ctx, message); err != nil {
		return l, nil, err
	}
	got, err := DecodeReservation(l.Body)
	if err != nil {
		return l, nil, nil //nolint:nilerr // that is why it is a dead letter
	}
	o, ok, err := s.decided(ctx, got.OrderID)
	if ok {
		l.Order = &o
	}
	return l, &got, err
}

// Replay publishes a dead letter again under the same id, for an operator. A
// letter that is replayed already stays as it is, without an error. A decision
// is final, and most dead letters have one: their order failed when they were
// given up, and its unit was given back. Their replay is CodeWrongState, and
// the buyer clicks again. So what a replay helps is a message that no version
// of ours could read until now, or whose order could not even be failed.
//
// The wish is written down first: where the queue does not answer, or we die
// before we ask it, the sweep publishes the letter.
func (s *Service) Replay(ctx context.Context, message, by string) (DeadLetter, error) {
	l, _, err := s.letter(ctx, message)
	switch {
	case err != nil:
		return DeadLetter{}, err
	case l.State == Discarded:
		return DeadLetter{}, wrongState("the message was discarded by " + l.DoneBy)
	case l.State != Open:
		return l, nil
	case l.Order != nil:
		return DeadLetter{}, wrongState(fmt.Sprintf("order %s is %s, and a decision is final: discard the message", l.Order.OrderID, l.Order.Status))
	}
	message = l.Message // as it is kept
	started, err := s.Letters.StartReplay(ctx, message, by)
	if err != nil {
		return DeadLetter{}, err
	}
	if started {
		outcome, err := s.Outbox.Resend(ctx, l.Message, l.Body, "replay")
		switch outcome {
		case queue.Accepted:
			err = s.Letters.EndReplay(ctx, message, Replayed)
		case queue.Rejected:
			if err := s.Letters.EndReplay(ctx, message, Open); err != nil {
				return DeadLetter{}, err
			}
			return DeadLetter{}, busy("the queue does not take the message, try again in a moment", err)
		}
		if err != nil {
			s.Log.Warn("a replay has no answer yet: the sweep goes on with it", "message", message, "error", err)
		}
	}
	l, _, err = s.letter(ctx, message)
	return l, err
}

// Discard puts a dead letter away, for an operator, and fails its order if it
// has no decision. A discarded one stays as it is, without an error.
func (s *Service) Discard(ctx context.Context, message, by string) (DeadLetter, error) {
	l, r, err := s.letter(ctx, message)
	switch {
	case err != nil:
		return DeadLetter{}, err
	case l.State == Discarded:
		return l, nil
	case l.State != Open:
		return DeadLetter{}, wrongState("the message was published again by " + l.DoneBy)
	}
	message = l.Message // as it is kept
	did, err := s.Letters.Discard(ctx, message, by, r)
	if err != nil {
		return DeadLetter{}, err
	}
	l, _, err = s.letter(ctx, message)
	if err == nil && did && l.Order != nil && !l.Order.Status.Holds() {
		s.closed(ctx, *l.Order)
	}
	return l, err
}
