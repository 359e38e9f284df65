package queue

import (
	"errors"
	"fmt"
)

// The sentinels of the contract; test with errors.Is. Context errors are
// returned as they are. Anything else is the client library's error, wrapped
// with the operation, so that errors.As reaches it.
var (
	// ErrClosed: the publisher, consumer or queue was closed.
	ErrClosed = errors.New("queue: closed")
	// ErrRejected: the message is certainly not in the queue.
	ErrRejected = errors.New("queue: rejected")
	// ErrSettled: the delivery was acked or nacked before.
	ErrSettled = errors.New("queue: delivery already settled")
	// ErrLeaseLost: the delivery now belongs to another consumer.
	ErrLeaseLost = errors.New("queue: lease lost, the delivery belongs to another consumer")
	// ErrUnsupported: this queue, with these settings, cannot do that.
	ErrUnsupported = errors.New("queue: not supported by this queue")
)

// Outcome is what became of one published message.
type Outcome int

const (
	Accepted Outcome = iota
	Rejected         // certainly not in the queue
	Unknown          // may or may not be in the queue
)

func (o Outcome) String() string {
	return [...]string{"accepted", "rejected", "unknown"}[o]
}

// PublishError carries one outcome per message of a Publish that was not
// accepted as a whole.
type PublishError struct {
	Outcomes []Outcome // as many as messages, in their order
	Err      error     // the first cause
}

func (e *PublishError) Error() string {
	var n [3]int
	for _, o := range e.Outcomes {
		n[o]++
	}
	return fmt.Sprintf("queue: publish: %d accepted, %d rejected, %d unknown: %v",
		n[Accepted], n[Rejected], n[Unknown], e.Err)
}

func (e *PublishError) Unwrap() error { return e.Err }

// OutcomeOf tells what became of message i of a Publish that returned err.
// An error that wraps ErrRejected or ErrClosed without being a *PublishError
// rejects the whole batch; any other error leaves it unknown.
func OutcomeOf(err error, i int) Outcome {
	if err == nil {
		return Accepted
	}
	var pe *PublishError
	if errors.As(err, &pe) {
		if i < len(pe.Outcomes) {
			return pe.Outcomes[i]
		}
		return Unknown
	}
	if errors.Is(err, ErrRejected) || errors.Is(err, ErrClosed) {
		return Rejected
	}
	return Unknown
}

// Reject wraps err so that the whole Publish counts as rejected.
func Reject(err error) error { return fmt.Errorf("%w: %w", ErrRejected, err) }

// SettleError carries one error per delivery of an Ack or Nack whose
// deliveries differ in their outcome; nil where a delivery was settled.
type SettleError struct {
	Errs []error // as many as deliveries, in their order
}

func (e *SettleError) Error() string {
	n := 0
	var first error
	for _, err := range e.Errs {
		if err != nil {
			n++
			if first == nil {
				first = err
			}
		}
	}
	return fmt.Sprintf("queue: settle: %d of %d failed: %v", n, len(e.Errs), first)
}

// Unwrap makes errors.Is find every cause.
func (e *SettleError) Unwrap() []error {
	var errs []error
	for _, err := range e.Errs {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// SettledOK reports whether delivery i of an Ack or Nack that returned err was
// settled by it.
func SettledOK(err error, i int) bool {
	if err == nil {
		return true
	}
	var se *SettleError
	if errors.As(err, &se) && i < len(se.Errs) {
		return se.Errs[i] == nil
	}
	return false
}
