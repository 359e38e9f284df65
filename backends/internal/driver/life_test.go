package driver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"queuelab/queue"
)

func TestALifeEndsOnceAndWaitsForWhatHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLife()
		worked := false
		if err := errors.Join(l.Begin(), l.Go(func(ctx context.Context) { <-ctx.Done(); worked = true })); err != nil {
			t.Fatal(err)
		}
		if first, again := l.End(), l.End(); !first || again {
			t.Errorf("ends: got %v and %v, want true and false", first, again)
		}
		waited := false
		go func() { l.Wait(); waited = true }()
		synctest.Wait()
		if !worked || waited {
			t.Errorf("with a call under way: got worked %v, waited %v, want true and false", worked, waited)
		}
		l.Done()
		synctest.Wait()
		if !waited {
			t.Error("with nothing under way: got none, want Wait to return")
		}
		if err := l.Begin(); !errors.Is(err, queue.ErrClosed) {
			t.Errorf("begin after the end: got %v, want ErrClosed", err)
		}
		if err := l.Go(func(context.Context) { t.Error("got work after the end, want none") }); !errors.Is(err, queue.ErrClosed) {
			t.Errorf("work after the end: got %v, want ErrClosed", err)
		}
		l.Wait()
	})
}
