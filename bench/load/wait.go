package load

import (
	"context"
	"runtime"
	"time"

	"queuelab/bench/ledger"
)

const (
	// coarse is where a Go timer is left for a precise sleep: the runtime's
	// poller rounds up to a millisecond.
	coarse = 3 * time.Millisecond
	// spin covers what the kernel takes to wake a thread. It is short, since
	// the brokers share the cores; and a wait that is no longer than this is
	// slept, since spinning through it would take a whole core at high rates.
	spin = 30 * time.Microsecond
)

// WaitUntil returns at until, as of ledger.Now, never earlier, or with
// ctx.Err() once ctx has ended.
func WaitUntil(ctx context.Context, until int64) error {
	if ledger.Now() < until {
		// Whoever was just given something to do begins on this thread, with no
		// other to be woken: a sleep in the kernel takes the processor along.
		runtime.Gosched()
	}
	for {
		left := time.Duration(until - ledger.Now())
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case left <= 0:
			return nil
		case left > 2*coarse:
			t := time.NewTimer(left - coarse)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
			}
		case left > spin:
			sleepUntil(until - int64(spin))
			for ledger.Now() < until {
				runtime.Gosched()
			}
		default:
			sleepUntil(until)
		}
	}
}
