// Package load sends messages at the times that a plan says (open loop), or as
// fast as answers come (closed loop).
//
// A plan is a Pacer. ParseShape reads one from a short text, by the syntax that
// ShapeSyntax shows; Source makes the messages, by ParseContent and KeySyntax.
// All of them are pure functions of the message's number and a seed, so that a
// run can be repeated message by message.
package load

import (
	"math"
	"sort"
	"strconv"
	"time"
)

// Pacer is the plan of an open loop: when each message is due.
type Pacer interface {
	// Due returns when message n is due, counted from the start;
	// math.MaxInt64: never. It is pure, never decreases with n, and may be
	// called by several goroutines at once.
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

func (c constant) String() string { return "constant:" + formatRate(float64(c)) }

// CountBefore returns how many messages of a plan are due before t, counted
// from the start. A message due at t is not one of them.
func CountBefore(p Pacer, t time.Duration) uint64 {
	high := uint64(1)
	for p.Due(high-1) < t {
		if high > math.MaxUint64/2 {
			return math.MaxUint64
		}
		high *= 2
	}
	low := high / 2 // message low-1 is due before t, message high-1 is not
	return low + uint64(sort.Search(int(high-low-1), func(i int) bool { return p.Due(low+uint64(i)) >= t }))
}

// MeanRate returns the messages a second that a plan has due from one time to
// another, the second excluded; 0 where there is no time between them.
func MeanRate(p Pacer, from, to time.Duration) float64 {
	if to <= from {
		return 0
	}
	return float64(CountBefore(p, to)-CountBefore(p, from)) / (to - from).Seconds()
}

func formatRate(r float64) string { return strconv.FormatFloat(r, 'f', -1, 64) }
