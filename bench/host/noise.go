package host

import (
	"context"
	"runtime"
	"slices"
	"time"

	"queuelab/bench/trial"
)

const (
	noiseTimes = 300
	noiseFor   = 500 * time.Millisecond
	noiseSleep = time.Millisecond
)

// noise asks for a millisecond of sleep, again and again, on a thread of its
// own, and looks how late it wakes. Nil: it could not be measured.
func noise(ctx context.Context) *trial.Noise {
	var late []int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Not unlocked: the thread ends with this goroutine, and with it what
		// was set for it.
		runtime.LockOSThread()
		precise()
		began := time.Now()
		for now := began; len(late) < noiseTimes && now.Sub(began) < noiseFor && ctx.Err() == nil; {
			sleep(noiseSleep)
			woke := time.Now()
			late = append(late, max((woke.Sub(now)-noiseSleep).Microseconds(), 0))
			now = woke
		}
	}()
	<-done
	if len(late) == 0 {
		return nil
	}
	slices.Sort(late)
	return &trial.Noise{P50: quantile(late, 50), P99: quantile(late, 99), Max: late[len(late)-1]}
}
