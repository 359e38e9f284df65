package choose

import (
	"cmp"
	"fmt"
	"slices"

	"queuelab/bench/trial"
)

// Speed is what a setting is ranked by: its p99 end to end, in µs, and the rate
// that it held. The intervals are of 95 % where there are six trials.
type Speed struct {
	P99    *Range `json:"p99Micros,omitempty"`
	Held   *Range `json:"heldPerSecond,omitempty"`
	noisy  string
	result string // whose p99 it is: only within one result settings take turns
	under  string // the conditions
}

// Range is a median and between what it lies, with the trials behind it.
type Range struct {
	Median  float64 `json:"median"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Trials  int     `json:"trials"`
	Offered float64 `json:"offered,omitempty"` // messages a second, of a p99
	Cell    string  `json:"cell"`
	Result  string  `json:"result"`
}

func rangeOf(m *measurement, metric string, alone float64) *Range {
	i := intervalOf(m, metric)
	r := &Range{Trials: m.Valid, Cell: m.proof("", "").Cell, Result: m.file}
	r.Median, r.Low, r.High = weigh(i, alone)
	if i != nil {
		r.Trials = i.N
	}
	return r
}

func (c *candidate) speed() *Speed {
	s := &Speed{}
	if m := c.e.first(c.String(), trial.TestLatency); m != nil && m.LatencyMicros != nil && m.LatencyMicros.EndToEnd.N >= fewestForP99 && m.Verdict != trial.VerdictSaturated {
		s.P99 = rangeOf(m, "endToEnd.p99", float64(m.LatencyMicros.EndToEnd.P99))
		s.P99.Offered, s.noisy, s.result = m.RatePerSecond, m.Noisy, m.file
		s.under = fmt.Sprint(m.RatePerSecond, m.PayloadBytes, m.Consumers, m.Concurrency)
		if m.Load != nil {
			s.under += fmt.Sprint(m.Load.Shape, m.Load.Keys, m.Load.Producers, m.Load.Batch)
		}
	}
	if m := c.e.first(c.String(), trial.TestThroughput); m != nil && m.RatePerSecond > 0 {
		s.Held = rangeOf(m, "ratePerSecond", m.RatePerSecond)
	}
	if s.P99 == nil && s.Held == nil {
		return nil
	}
	return s
}

// beats reports whether a's p99 is lower beyond doubt: measured in turns with b's,
// under the same conditions, in trials enough to bound both, that lie apart.
func (s *Speed) beats(o *Speed) bool {
	if s == nil || o == nil || s.P99 == nil || o.P99 == nil || s.result != o.result || s.under != o.under || s.noisy+o.noisy != "" {
		return false
	}
	return min(s.P99.Trials, o.P99.Trials) >= fewestTrials && s.P99.High < o.P99.Low
}

// rank orders the candidates, and gives those that fit the places that their
// trials leave possible. Who was measured stands before who was not; among the
// measured the lowest median leads, whether or not it is told apart from the next.
func rank(all []Candidate) {
	order(all)
	n := slices.IndexFunc(all, func(c Candidate) bool { return !c.Fits })
	if n < 0 {
		n = len(all)
	}
	fit := all[:n]
	slices.SortStableFunc(fit, func(a, b Candidate) int {
		am, bm := a.Speed != nil && a.Speed.P99 != nil, b.Speed != nil && b.Speed.P99 != nil
		if !am || !bm {
			return cmp.Compare(oneIf(bm), oneIf(am))
		}
		return cmp.Compare(a.Speed.P99.Median, b.Speed.P99.Median)
	})
	for i := range fit {
		c := &fit[i]
		c.First, c.Last = 1, n
		for j := range fit {
			if fit[j].Speed.beats(c.Speed) {
				c.First++
			}
			if c.Speed.beats(fit[j].Speed) {
				c.Last--
			}
		}
		if c.First < c.Last {
			c.Unplaced = c.Speed.doubt()
		}
	}
}

// doubt is why a place is not certain.
func (s *Speed) doubt() string {
	switch {
	case s == nil || s.P99 == nil:
		return "its latency was not measured"
	case s.P99.Trials < fewestTrials:
		return fmt.Sprintf("n=%d, and 6 trials are the least that bound a median", s.P99.Trials)
	case s.noisy != "":
		return "too noisy: " + s.noisy
	}
	return "its trials and others' overlap, or are not of one result"
}
