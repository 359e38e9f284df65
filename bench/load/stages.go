package load

import (
	"math"
	"sort"
	"time"
)

// stage is a stretch of a plan in which the rate goes from one value to another.
type stage struct {
	from, to float64 // messages a second
	length   float64 // seconds
}

func (s stage) messages() float64 { return (s.from + s.to) / 2 * s.length }

// stages is a plan of a rate that changes over time: message n is due once the
// rate's integral reaches n, so that no fraction of a message is forgotten
// between two stages.
type stages struct {
	text   string
	list   []stage
	times  []float64 // when each stage begins, seconds
	counts []float64 // messages due before it
}

// newStages returns the plan whose last stage never ends, at its rate to.
func newStages(text string, list ...stage) *stages {
	s := &stages{text: text, list: list}
	var at, count float64
	for _, g := range list {
		s.times, s.counts = append(s.times, at), append(s.counts, count)
		at, count = at+g.length, count+g.messages()
	}
	return s
}

// Due implements Pacer.
func (s *stages) Due(n uint64) time.Duration {
	// The last stage that begins with message n or before it: one without a
	// rate is skipped, since the next begins with the same message.
	i := sort.Search(len(s.counts), func(i int) bool { return s.counts[i] > float64(n) }) - 1
	left := float64(n) - s.counts[i] // messages into the stage
	g := s.list[i]
	var t float64
	switch slope := (g.to - g.from) / g.length; {
	case left == 0:
	case g.from == g.to: // also the last stage, whose length says nothing
		t = left / g.from
	default:
		// from·t + slope·t²/2 = left, in the form that also holds where either
		// of the two is next to nothing.
		t = 2 * left / (g.from + math.Sqrt(max(0, g.from*g.from+2*slope*left)))
	}
	if i < len(s.list)-1 {
		t = min(t, g.length) // rounding never reaches into the next stage
	}
	if ns := math.Round((s.times[i] + t) * 1e9); ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}

func (s *stages) String() string { return s.text }
