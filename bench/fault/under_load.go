package fault

import (
	"context"
	"time"
)

// load starts the producer of a trial and lets it publish.
func load(ctx context.Context, s Scene, r Role) (Node, error) {
	producer, err := s.Start(ctx, r)
	if err != nil {
		return nil, err
	}
	return producer, producer.Produce()
}

// underLoad waits until this trial's share of the messages has been delivered,
// between a quarter and three quarters, and so until consumers are at work. It
// reports false where the trial ends here: no load, no proof.
func underLoad(ctx context.Context, s Scene) (bool, error) {
	if s.Target().Caps.Skips { // what it skips is never delivered
		return true, whilePublishing(ctx, s)
	}
	n := float64(s.Target().Messages)
	if err := s.Delivered(ctx, int64(n/4+s.Moment()*n/2)); err != nil {
		s.Invalid("%v", err)
		return false, ctx.Err()
	}
	return true, nil
}

// whilePublishing waits for this trial's share of the time that a producer with
// its own rate needs for the messages, between a quarter and three quarters of
// it: consumers that lag behind do not put it off until all is published.
func whilePublishing(ctx context.Context, s Scene) error {
	t := s.Target()
	all := float64(t.Messages) / (t.Rate / 2) * float64(time.Second)
	return pass(ctx, time.Duration(all*(0.25+s.Moment()/2)))
}

// pass lets an outage last.
func pass(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// undo runs what takes a fault back, also when ctx has ended.
func undo(ctx context.Context, what func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	return what(ctx)
}
