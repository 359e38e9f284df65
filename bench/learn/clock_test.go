package learn

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheStartsOfBrokersAreNotOnALessonsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, c, cancel := newClock(t.Context(), 30*time.Second)
		defer cancel()
		time.Sleep(20 * time.Second)
		s := &Stand{ctx: ctx, clock: c}
		s.StartAgain(func(context.Context) error { time.Sleep(time.Minute); return nil })
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if err := ctx.Err(); err != nil {
			t.Errorf("got %v after 29 s and a start, want the lesson to go on", context.Cause(ctx))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got, want := context.Cause(ctx), "the lesson was not over within 30s"; got == nil || got.Error() != want {
			t.Errorf("got %v after 31 s, want %q", got, want)
		}
	})
}
