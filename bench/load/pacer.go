// Package load sends messages at the times that a plan says (open loop), or as
// fast as answers come (closed loop).
package load

import (
	"math"
	"time"
)

// Pacer is the plan of an open loop: when each message is due.
type Pacer interface {
	// Due returns when message n is due, counted from the start. It is pure,
	// and never decreases with n.
	Due(n uint64) time.Duration
}

// Constant spaces messages evenly; the first is due at once. With a rate that
// is not positive no message is ever due.
func Constant(perSecond float64) Pacer { return constant(perSecond) }

type constant float64

// Due implements Pacer.
func (c constant) Due(n uint64) time.Duration {
	if ns := float64(n) / float64(c) * 1e9; float64(c) > 0 && ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}
