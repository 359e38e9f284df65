// Package loop is the one way in which the service looks after something again
// and again: with a pause, with an end for a look that gets no answer, and with
// one line when looks begin to fail and one when they work again.
package loop

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Patience is how long a look waits for its next step unless somebody says
// otherwise: as long as a statement of ours may wait for a lock.
const Patience = 10 * time.Second

// ErrNoAnswer: a step of a look took too long, as when a server is frozen.
var ErrNoAnswer = errors.New("no answer")

// Loop looks again and again.
type Loop struct {
	// Look looks once, and says after which pause to look again; 0: Every.
	Look  func(ctx context.Context) (next time.Duration, err error)
	Every time.Duration
	// Within bounds a step of a look; see Within. 0: Patience.
	Within time.Duration
	Tell   func(error) // see Outage; nil: nobody is told
	// Wake ends the pause early, but for the first Rest of it. Nil: nobody does.
	Wake <-chan struct{}
	Rest time.Duration
}

// Run looks at once, and then until ctx ends.
func (l Loop) Run(ctx context.Context) {
	outage := Outage{Tell: l.Tell}
	for {
		var next time.Duration
		err := Within(ctx, l.Within, func(ctx context.Context) (err error) {
			next, err = l.Look(ctx)
			return err
		})
		if ctx.Err() != nil {
			return
		}
		outage.Note(err)
		if next == 0 {
			next = l.Every
		}
		if !pause(ctx, min(l.Rest, next), nil) || !pause(ctx, next-l.Rest, l.Wake) {
			return
		}
	}
}

// pause reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-wake:
	}
	return true
}

// patience is what Step finds in a look's ctx.
type patience struct {
	timer *time.Timer
	d     time.Duration
}

type patienceKey struct{}

// Within looks with a ctx that ends once d has passed without a Step; 0: Patience.
// So a look may take as long as it likes while it gets on, and what never answers
// is given up. The error is then ErrNoAnswer, and wraps the look's own too.
func Within(ctx context.Context, d time.Duration, look func(context.Context) error) error {
	if d == 0 {
		d = Patience
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(d, func() { cancel(ErrNoAnswer) })
	defer timer.Stop()
	err := look(context.WithValue(ctx, patienceKey{}, &patience{timer, d}))
	if err != nil && errors.Is(context.Cause(ctx), ErrNoAnswer) {
		return fmt.Errorf("%w within %v: %w", ErrNoAnswer, d, err)
	}
	return err
}

// Step says that a look gets on. Outside of a look it does nothing.
func Step(ctx context.Context) {
	if p, ok := ctx.Value(patienceKey{}).(*patience); ok {
		p.timer.Reset(p.d)
	}
}
