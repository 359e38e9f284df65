package trial

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"queuelab/bench/ledger"
)

// DefaultPromise is the one that a suite asks about.
const DefaultPromise = "p99<20ms,lost=0"

// Promise is what a queue must keep at a rate.
type Promise struct {
	limits []limit
	lost   bool // nothing may be lost
	text   string
}

type limit struct {
	name  string
	most  time.Duration
	equal bool                 // it may be as much
	value func(*Latency) int64 // µs
}

func (p Promise) String() string { return p.text }

// ParsePromise reads a promise: bounds on the end-to-end latency (p50, p90, p99,
// p99.9, max) or on the publish latency (publish.p99), and lost=0, separated by
// commas, as in "p99<20ms,lost=0".
func ParsePromise(text string) (Promise, error) {
	const form = `want bounds such as "p99<20ms,publish.p99<5ms,lost=0"`
	p := Promise{text: text}
	for term := range strings.SplitSeq(text, ",") {
		term = strings.TrimSpace(term)
		if name, n, ok := strings.Cut(term, "="); ok && strings.TrimSpace(name) == "lost" {
			if strings.TrimSpace(n) != "0" {
				return Promise{}, fmt.Errorf("the promise %q: %q: only lost=0 is a promise", text, term)
			}
			p.lost = true
			continue
		}
		name, most, ok := strings.Cut(term, "<")
		most, equal := strings.CutPrefix(most, "=")
		name, most = strings.TrimSpace(name), strings.TrimSpace(most)
		value := percentileOf(name)
		if !ok || value == nil {
			return Promise{}, fmt.Errorf("the promise %q: %q is unknown: %s", text, term, form)
		}
		d, err := time.ParseDuration(most)
		if err != nil || d < time.Microsecond {
			return Promise{}, fmt.Errorf("the promise %q: %q is no duration of a microsecond or more: %s", text, most, form)
		}
		if slices.ContainsFunc(p.limits, func(l limit) bool { return l.name == name }) {
			return Promise{}, fmt.Errorf("the promise %q bounds %s twice", text, name)
		}
		p.limits = append(p.limits, limit{name, d, equal, value})
	}
	return p, nil
}

func percentileOf(name string) func(*Latency) int64 {
	name, publish := strings.CutPrefix(name, "publish.")
	get, ok := map[string]func(Percentiles) int64{
		"p50": func(p Percentiles) int64 { return p.P50 }, "p90": func(p Percentiles) int64 { return p.P90 },
		"p99": func(p Percentiles) int64 { return p.P99 }, "p99.9": func(p Percentiles) int64 { return p.P999 },
		"max": func(p Percentiles) int64 { return p.Max },
	}[name]
	if !ok {
		return nil
	}
	return func(l *Latency) int64 {
		if publish {
			return get(l.Publish)
		}
		return get(l.EndToEnd)
	}
}

// broken says what of the promise a load did not keep; "" where it was kept.
func (p Promise) broken(m *measured) string {
	var why []string
	if len(m.invalid) > 0 {
		return m.invalid[0]
	}
	if m.saturated != "" {
		why = append(why, m.saturated)
	}
	if p.lost && m.report.Lost > 0 {
		why = append(why, fmt.Sprintf("%d lost", m.report.Lost))
	}
	if m.report.EndToEnd == nil || m.report.EndToEnd.TotalCount() == 0 {
		return "nothing was delivered"
	}
	l := latencyOf(m.report.Latencies)
	for _, x := range p.limits {
		if us := x.value(l); us > x.most.Microseconds() || us == x.most.Microseconds() && !x.equal {
			why = append(why, fmt.Sprintf("%s was %v", x.name, time.Duration(us)*time.Microsecond))
		}
	}
	return strings.Join(why, "; ")
}

const (
	sloWarmup    = time.Second
	sloFirst     = 500.0     // messages a second
	sloHighest   = 1_000_000 // no generator here reaches it
	sloPrecision = 1.1       // the search ends when the bounds are that close
)

// dwell is how long the search stays at one rate.
func (p LoadParams) dwell() time.Duration {
	return min(max(p.Duration/4, 2*time.Second), 5*time.Second)
}

// highest searches for the highest rate that keeps the promise: it doubles the
// rate until the promise breaks, halves the interval between the last two until
// it is narrow, and holds the rate that it found for twice as long to confirm
// it. Each rate is an open loop of its own, so that what is reported as latency
// was never measured at saturation.
func (l *Lab) highest(ctx context.Context, s Spec, seed uint64) (*measured, error) {
	promise, err := ParsePromise(s.Load.Promise)
	if err != nil {
		return nil, err
	}
	search := sloSearch{SLO: SLO{Promise: promise.String()}}
	at := func(rate float64, dwell time.Duration) (bool, error) {
		spec := s
		spec.Test, spec.Load.Rate, spec.Load.Shape = TestLatency, rate, ""
		spec.Load.Warmup, spec.Load.Duration = sloWarmup, dwell
		m, err := l.latency(ctx, spec, seed)
		if err != nil {
			return false, err
		}
		why := promise.broken(m)
		if why == "" && m.draining > dwell/10 {
			why = fmt.Sprintf("a backlog grew: the last message came %v after the last was sent", m.draining.Round(time.Millisecond))
		}
		search.note(m, rate, why)
		return why == "", nil
	}
	if err := search.run(at, s.Load.dwell()); err != nil {
		return nil, err
	}
	m := search.last
	m.slo, m.rate, m.saturated = &search.SLO, search.HighestRate, ""
	m.report.Counts = search.counts
	return m, nil
}

// sloSearch is a search under way.
type sloSearch struct {
	SLO
	last   *measured
	counts ledger.Counts // of the loads that were kept
}

func (s *sloSearch) note(m *measured, rate float64, why string) {
	p := RatePoint{Offered: rate, Achieved: rate, Lost: m.report.Lost, Kept: why == "", Why: why}
	if m.sending > 0 {
		p.Achieved = math.Round(float64(m.report.Sent) / m.sending.Seconds())
	}
	if m.report.EndToEnd != nil && m.report.EndToEnd.TotalCount() > 0 {
		p.LatencyMicros = latencyOf(m.report.Latencies)
	}
	s.Curve = append(s.Curve, p)
	if p.Kept { // what is lost beyond the promise is in the curve, and no finding: the search goes there on purpose
		addCounts(&s.counts, m.report.Counts)
	}
	s.last = m
}

// run searches by asking whether a rate is kept for a dwell.
func (s *sloSearch) run(kept func(rate float64, dwell time.Duration) (bool, error), dwell time.Duration) error {
	good, bad, rate := 0.0, math.Inf(1), sloFirst
	for good == 0 || bad/good > sloPrecision {
		ok, err := kept(rate, dwell)
		if err != nil {
			return err
		}
		if ok {
			good = rate
		} else {
			bad = rate
		}
		switch {
		case math.IsInf(bad, 1) && good >= sloHighest:
			s.HighestRate, s.Limit = good, "the promise was kept at every rate that was tried"
			s.sort()
			return nil
		case math.IsInf(bad, 1):
			rate = min(good*2, sloHighest)
		case good == 0 && bad <= 10:
			s.Limit = "the promise was kept at no rate, not even at " + strconv.FormatFloat(bad, 'f', -1, 64) + "/s"
			s.sort()
			return nil
		case good == 0:
			rate = math.Max(10, math.Round(bad/5))
		default:
			rate = math.Round((good + bad) / 2)
		}
	}
	// A rate that was kept once, for a moment, is not yet a promise.
	tried := good
	for range 4 {
		ok, err := kept(good, 2*dwell)
		if err != nil {
			return err
		}
		if ok {
			s.HighestRate = good
			s.Limit = s.limit(good)
			s.sort()
			return nil
		}
		tried, good = good, math.Round(good*0.9)
	}
	s.Limit = fmt.Sprintf("no rate down to %.0f/s was kept for long enough: the promise is near what the machine's noise allows", tried)
	s.sort()
	return nil
}

// limit is what broke at the lowest rate above the one that was kept.
func (s *sloSearch) limit(good float64) string {
	above := math.Inf(1)
	why := ""
	for _, p := range s.Curve {
		if !p.Kept && p.Offered >= good && p.Offered < above {
			above, why = p.Offered, p.Why
		}
	}
	return fmt.Sprintf("at %.0f/s: %s", above, why)
}

func (s *sloSearch) sort() {
	slices.SortStableFunc(s.Curve, func(a, b RatePoint) int { return int(a.Offered - b.Offered) })
}
