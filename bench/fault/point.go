// Package fault holds the faults, one file each: how each is injected, confirmed
// and healed; and the named places of a consumer's work at which it can be made
// to kill itself.
package fault

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
)

// The places in a consumer's loop at which it can be made to die.
const (
	OnReceive = "on-receive" // received, the handler has not begun
	MidHandle = "mid-handle" // in the handler, its effect is not committed
	BeforeAck = "before-ack" // the effect is committed, the ack is not sent
	AfterAck  = "after-ack"
)

// Point makes a process kill itself with SIGKILL when it passes a named place
// for the nth time. A kill from outside almost never falls between a commit
// and an ack, a few microseconds apart. A nil Point never kills.
type Point struct {
	place  string
	nth    int64
	passed atomic.Int64
}

// ParsePoint makes a Point; the empty place is none.
func ParsePoint(place string, nth int64) (*Point, error) {
	if place == "" {
		return nil, nil
	}
	places := []string{OnReceive, MidHandle, BeforeAck, AfterAck}
	if !slices.Contains(places, place) {
		return nil, fmt.Errorf("crash point %q: want one of %s", place, strings.Join(places, ", "))
	}
	if nth < 1 {
		return nil, fmt.Errorf("crash point %s: pass %d: want at least 1", place, nth)
	}
	return &Point{place: place, nth: nth}, nil
}

// Pass kills the process if it is the one. It uses the signal, not os.Exit,
// since that would run what a crash does not.
func (p *Point) Pass(place string) {
	if p == nil || p.place != place || p.passed.Add(1) != p.nth {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // to oneself, it cannot fail
	select {}                                      // until the kernel has done it
}
