package compare

import (
	"fmt"
	"slices"
	"strings"

	"queuelab/bench/trial"
)

// The metrics that are shares of the trials: one that lost is one that lost,
// however much was lost together.
const (
	Lossy      = "lossy"      // something that was accepted is lost
	Duplicates = "duplicates" // something had its effect twice
	Saturated  = "saturated"  // the load was not held
)

const (
	unitShare   = "of trials"
	rateMetric  = "ratePerSecond"
	scaleMetric = rateMetric + "@" // with the value of the scaled dimension
)

// value is a metric of one trial.
type value struct {
	n int // the trial's number: settings that are interleaved in one run share it
	x float64
}

// sample is what one side has of a metric.
type sample struct {
	values []value
	median float64 // where there are no values: of all trials together
	only   bool    // there is only the median
}

func (s sample) xs() []float64 {
	xs := make([]float64, len(s.values))
	for i, v := range s.values {
		xs[i] = v.x
	}
	return xs
}

func (s sample) empty() bool { return len(s.values) == 0 && !s.only }

// counts reports whether a metric says something about the cell: in an open loop
// the rate is the plan's, and where it was scaled each value has its own.
func counts(m trial.Metric, c trial.Cell) bool {
	return m.Name != rateMetric || c.Test == trial.TestSLO || c.LoopModel != "open" && len(c.Scaling) == 0
}

// sampleOf gathers a metric over one side's cells.
func sampleOf(m trial.Metric, cells []trial.Cell) sample {
	var s sample
	for _, c := range cells {
		if !counts(m, c) {
			continue
		}
		if len(c.Runs) == 0 { // an old result, or a test that is a search and no trial
			if x, ok := m.Of(whole(c)); ok && c.Verdict != trial.VerdictSaturated {
				s.median, s.only = x, true
			}
			continue
		}
		for _, r := range c.Runs {
			if x, ok := m.Of(r); ok && usable(r) {
				s.values = append(s.values, value{r.N, x})
			}
		}
	}
	if s.only && len(cells) > 1 {
		return sample{} // medians of several results make no common one
	}
	return s
}

// usable leaves out the trials that say nothing. One that was merely late stays:
// its latency counts from when messages were due and only gets worse by it, and to
// drop it would flatter whoever is late more often. But messages that were refused
// are in no percentile, and flatter whoever refuses.
func usable(r trial.TrialRun) bool {
	return len(r.Invalid) == 0 && (r.Saturated == "" || r.Accepted == r.Sent)
}

// whole is the cell as if it were one trial.
func whole(c trial.Cell) trial.TrialRun {
	r := trial.TrialRun{RatePerSecond: c.RatePerSecond, LatencyMicros: c.LatencyMicros, Sale: c.Sale, Cost: c.Cost}
	if c.RecoveryMillis != nil {
		r.RecoveryMillis = &c.RecoveryMillis.P50
	}
	if c.SLO != nil {
		r.RatePerSecond = c.SLO.HighestRate
	}
	return r
}

// scaled are the metrics of a scaling cell: the rate at each of its values.
func scaled(cells []trial.Cell) []trial.Metric {
	var metrics []trial.Metric
	for _, c := range cells {
		for _, p := range c.Scaling {
			m := trial.Metric{Name: fmt.Sprint(scaleMetric, p.Value), Unit: "/s", HigherIsBetter: true}
			if !slices.ContainsFunc(metrics, func(o trial.Metric) bool { return o.Name == m.Name }) {
				metrics = append(metrics, m)
			}
		}
	}
	return metrics
}

func scaledSample(m trial.Metric, cells []trial.Cell) sample {
	var s sample
	for _, c := range cells {
		for _, p := range c.Scaling {
			if fmt.Sprint(scaleMetric, p.Value) != m.Name {
				continue
			}
			for i, x := range p.Rates {
				n := i // an older result does not say of which trial
				if i < len(p.Trials) {
					n = p.Trials[i]
				}
				s.values = append(s.values, value{n, x})
			}
		}
	}
	return s
}

// share is how many of the trials are so.
type share struct{ k, n int }

// shareOf counts the valid trials; n is 0 where an old result cannot tell.
func shareOf(name string, cells []trial.Cell) share {
	var s share
	for _, c := range cells {
		if len(c.Runs) == 0 {
			s = s.plus(oldShare(name, c))
			continue
		}
		for _, r := range c.Runs {
			if len(r.Invalid) > 0 {
				continue
			}
			s.n++
			if name == Lossy && r.Lost > 0 || name == Duplicates && r.EffectDuplicates > 0 || name == Saturated && r.Saturated != "" {
				s.k++
			}
		}
	}
	return s
}

func (s share) plus(o share) share { return share{s.k + o.k, s.n + o.n} }

// oldShare knows from the sums alone when none or all of the trials are so.
func oldShare(name string, c trial.Cell) share {
	sum := map[string]int64{Lossy: c.Lost, Duplicates: c.EffectDuplicates}[name]
	switch {
	case name == Saturated && c.Valid > 1:
		return share{}
	case name == Saturated:
		if c.Verdict == trial.VerdictSaturated {
			sum = 1
		}
	case name == Lossy && c.Loss != nil:
		return share{c.Loss.Lossy, c.Loss.Trials}
	}
	switch {
	case sum == 0:
		return share{0, c.Valid}
	case c.Valid == 1:
		return share{1, 1}
	}
	return share{}
}

// remarks say which trials of a cell are in no number, which did not hold the
// load, and why.
func remarks(side string, cells []trial.Cell) (notes []string) {
	var all int
	var dropped, late []string // reasons
	for _, c := range cells {
		if len(c.Runs) == 0 && c.Verdict == trial.VerdictSaturated {
			return []string{fmt.Sprintf("%s: left out, since the load was not held: %s", side, c.Note)}
		}
		for _, r := range c.Runs {
			all++
			switch {
			case len(r.Invalid) > 0:
				dropped = append(dropped, "invalid: "+r.Invalid[0])
			case !usable(r):
				dropped = append(dropped, "saturated: "+r.Saturated)
			case r.Saturated != "":
				late = append(late, r.Saturated)
			}
		}
	}
	if len(dropped) > 0 {
		notes = append(notes, fmt.Sprintf("%s: %d of %d trials are left out: %s", side, len(dropped), all, firstAndMore(dropped)))
	}
	if len(late) > 0 {
		notes = append(notes, fmt.Sprintf("%s: %d of %d trials did not hold the load, and count as they are: %s", side, len(late), all, firstAndMore(late)))
	}
	return notes
}

func firstAndMore(reasons []string) string {
	slices.Sort(reasons)
	reasons = slices.Compact(reasons)
	if len(reasons) == 1 {
		return reasons[0]
	}
	return reasons[0] + ", and others"
}

// MetricNames lists what can be compared, for help and for budgets.
func MetricNames() []string {
	var names []string
	for _, m := range trial.Metrics() {
		names = append(names, m.Name)
	}
	return append(names, scaleMetric+"N", Lossy, Duplicates, Saturated)
}

func known(metric string) bool {
	return slices.Contains(MetricNames(), metric) || strings.HasPrefix(metric, scaleMetric)
}
