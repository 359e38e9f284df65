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
// between a quarter and three quarters. It reports false where the trial ends
// here: no load, no proof.
func underLoad(ctx context.Context, s Scene) (bool, error) {
	return underLoadOf(ctx, s, s.Target().Messages)
}

// underLoadOf is underLoad with only n of them.
func underLoadOf(ctx context.Context, s Scene, n uint64) (bool, error) {
	if err := s.Delivered(ctx, int64(float64(n)*(0.25+s.Moment()/2))); err != nil {
		s.Invalid("%v", err)
		return false, ctx.Err()
	}
	return true, nil
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
