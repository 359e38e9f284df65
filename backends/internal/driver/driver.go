// Package driver is what the backends' clients have in common, whatever they talk
// to: how concurrent calls share round trips, how a read that cannot be
// interrupted serves a Receive that can, what a Publish and an Ack make of the
// answers, and how a queue closes what it has opened. It knows no protocol.
package driver

import (
	"math/rand/v2"
	"time"
)

// Backoff is the pause after so many failures in a row: 0 after none, then from
// 100 ms to 1 s, so that an outage is at most ten errors per second.
func Backoff(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	d := min(100*time.Millisecond<<min(failures-1, 4), time.Second)
	return d + rand.N(d/4)
}

// Sleep waits, and reports whether it was not cut short by done.
func Sleep(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return false
	case <-t.C:
		return true
	}
}

// Signal leaves a token in a channel that holds one, if there is none yet: what
// is signalled while nobody looks is seen once.
func Signal(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
