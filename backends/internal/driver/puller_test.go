package driver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"queuelab/queue"
)

func TestAnOutageIsAtMostTenErrorsPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		p := NewPuller(func(int) ([]int, error) { return nil, down }, func() {})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		n := 0
		for {
			_, err := p.Receive(ctx, 1)
			if ctx.Err() != nil {
				break
			}
			if !errors.Is(err, down) {
				t.Fatalf("got %v, want the error of the read", err)
			}
			n++
		}
		if n < 5 || n > 100 {
			t.Errorf("errors in ten seconds: got %d, want 5 to 100", n)
		}
		p.Close()
	})
}

func TestWhatIsReadForNobodyIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := 0
		p := NewPuller(func(most int) ([]int, error) {
			time.Sleep(time.Second)
			next++
			return []int{next}, nil
		}, func() {})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if _, err := p.Receive(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want context.DeadlineExceeded as it is", err)
		}
		time.Sleep(5 * time.Second) // nobody waits: it must not read on
		if got, err := p.Receive(t.Context(), 1); err != nil || got[0] != 1 {
			t.Errorf("got %v, %v, want the first", got, err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		p.Receive(ctx, 1)
		if rest := p.Close(); len(rest) != 1 || rest[0] != 2 {
			t.Errorf("left at Close: got %v, want [2]", rest)
		}
		if _, err := p.Receive(t.Context(), 1); !errors.Is(err, queue.ErrClosed) {
			t.Errorf("after Close: got %v, want ErrClosed", err)
		}
	})
}
