package sale

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

type valueKey struct{}

func TestAStepEndsByItselfWhateverItsBuyerDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p patience
		const limit = 3 * time.Second
		buyer, leave := context.WithCancel(context.WithValue(t.Context(), valueKey{}, "of the buyer"))
		began := time.Now()
		ctx := p.within(buyer, began, limit)
		leave()
		if err := ctx.Err(); err != nil {
			t.Errorf("the buyer has left: got %v, want a step that goes on", err)
		}
		if got := ctx.Value(valueKey{}); got != "of the buyer" {
			t.Errorf("got value %v, want that of the buyer's context", got)
		}
		<-ctx.Done()
		if took := time.Since(began); took != limit || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("got %v after %v, want a passed deadline after %v", ctx.Err(), took, limit)
		}
	})
}

func TestStepsThatShareATimerEndAThirtiethTooEarlyAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p patience
		const limit = 3 * time.Second
		first := p.within(t.Context(), time.Now(), limit)
		for range 300 {
			time.Sleep(7 * time.Millisecond) // of the bubble's clock
			now := time.Now()
			end, ok := p.within(t.Context(), now, limit).Deadline()
			if lasts := end.Sub(now); !ok || lasts > limit || lasts < limit-limit/30 {
				t.Fatalf("got a step of %v, want %v to %v", lasts, limit-limit/30, limit)
			}
		}
		if end, _ := p.within(t.Context(), time.Now(), time.Second).Deadline(); time.Until(end) != time.Second {
			t.Errorf("got a step of %v, want the second that was asked for", time.Until(end))
		}
		<-first.Done() // those who came later have not moved its end
	})
}
