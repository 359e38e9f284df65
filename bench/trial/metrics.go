package trial

import "queuelab/bench/stat"

// Metric is a number that every trial of a cell has, so that cells can be
// spread, ranked and compared by it.
type Metric struct {
	Name           string // as in Cell.Spread
	Unit           string
	HigherIsBetter bool
	Of             func(TrialRun) (float64, bool) // false: the trial has none
}

// Metrics lists them, those that a cell is judged by first.
func Metrics() []Metric {
	latency := func(name string, get func(*Latency) int64) Metric {
		return Metric{Name: name, Unit: "µs", Of: func(r TrialRun) (float64, bool) {
			if r.LatencyMicros == nil {
				return 0, false
			}
			return float64(get(r.LatencyMicros)), true
		}}
	}
	cost := func(name, unit string, get func(*Cost) (float64, bool)) Metric {
		return Metric{Name: name, Unit: unit, Of: func(r TrialRun) (float64, bool) {
			if r.Cost == nil {
				return 0, false
			}
			return get(r.Cost)
		}}
	}
	sale := func(name string, get func(*Sale) *Percentiles) Metric {
		return Metric{Name: name, Unit: "µs", Of: func(r TrialRun) (float64, bool) {
			if r.Sale == nil || get(r.Sale) == nil {
				return 0, false
			}
			return float64(get(r.Sale).P99), true
		}}
	}
	return []Metric{
		latency("endToEnd.p50", func(l *Latency) int64 { return l.EndToEnd.P50 }),
		latency("endToEnd.p99", func(l *Latency) int64 { return l.EndToEnd.P99 }),
		latency("publish.p50", func(l *Latency) int64 { return l.Publish.P50 }),
		latency("publish.p99", func(l *Latency) int64 { return l.Publish.P99 }),
		{Name: "ratePerSecond", Unit: "/s", HigherIsBetter: true, Of: func(r TrialRun) (float64, bool) { return r.RatePerSecond, r.RatePerSecond > 0 }},
		{Name: "recoveryMillis", Unit: "ms", Of: func(r TrialRun) (float64, bool) {
			if r.RecoveryMillis == nil {
				return 0, false
			}
			return float64(*r.RecoveryMillis), true
		}},
		sale("sale.answer.p99", func(s *Sale) *Percentiles { return s.AnswerMicros }),
		sale("sale.committed.p99", func(s *Sale) *Percentiles { return s.CommittedMicros }),
		cost("cost.clientCpuSeconds", "CPU s/million", func(c *Cost) (float64, bool) { return c.ClientCPUSeconds, true }),
		cost("cost.brokerCpuSeconds", "CPU s/million", func(c *Cost) (float64, bool) { return c.BrokerCPUSeconds, c.BrokerKnown }),
	}
}

// judgedBy is the metric whose spread decides whether a cell can be ranked.
func judgedBy(test string) string {
	switch test {
	case TestLatency:
		return "endToEnd.p99"
	case TestThroughput:
		return "ratePerSecond"
	}
	return ""
}

// spread fills in the medians over the valid runs, and whether they are too
// noisy to rank. In an open loop the rate is the plan's, and says nothing.
func (c *Cell) spread(seed uint64) {
	c.Spread = map[string]Interval{}
	for _, m := range Metrics() {
		if m.Name == "ratePerSecond" && c.Test == TestLatency {
			continue
		}
		var xs []float64
		for _, r := range c.Runs {
			if x, ok := m.Of(r); ok && len(r.Invalid) == 0 {
				xs = append(xs, x)
			}
		}
		if len(xs) == 0 {
			continue
		}
		c.Spread[m.Name] = intervalOf(xs, seed)
		if m.Name == judgedBy(c.Test) {
			c.Noisy = stat.Noisy(xs)
		}
	}
}

// loss judges by the crash: what one crash loses is lost together.
func (c *Cell) loss() {
	if c.Test != TestCrash && c.Test != TestFault || c.Valid == 0 {
		return
	}
	l := &Loss{}
	for _, r := range c.Runs {
		if len(r.Invalid) > 0 {
			continue
		}
		l.Trials++
		if r.Lost > 0 {
			l.Lossy++
		}
	}
	l.Low, l.High = stat.ClopperPearson(l.Lossy, l.Trials)
	c.Loss = l
}

// intervalOf is the median of some values, with its bootstrap interval.
func intervalOf(xs []float64, seed uint64) Interval {
	low, high := stat.MedianInterval(xs, seed)
	return Interval{Median: stat.Median(xs), Low: low, High: high, N: len(xs)}
}
