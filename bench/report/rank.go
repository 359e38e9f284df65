package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"queuelab/bench/trial"
)

// fewestTrials bound a median at 95 %: with fewer, its interval is only the
// least and the greatest that were seen.
const fewestTrials = 6

// fewestForP99 messages leave ten beyond the 99th percentile.
const fewestForP99 = 1000

// measure is what a ranking goes by.
type measure struct {
	Test, Metric, Path string // Path is the cell's own number, where there is no spread
	Kind               string
	HigherIsBetter     bool
	of                 func(*trial.Cell) (float64, bool)
}

func byLatency() measure {
	return measure{trial.TestLatency, "endToEnd.p99", "latencyMicros.endToEnd.p99", asMicros, false, func(c *trial.Cell) (float64, bool) {
		if c.LatencyMicros == nil || c.LatencyMicros.EndToEnd.N < fewestForP99 {
			return 0, false
		}
		return float64(c.LatencyMicros.EndToEnd.P99), true
	}}
}

func byThroughput() measure {
	return measure{trial.TestThroughput, "ratePerSecond", "ratePerSecond", asRate, true, func(c *trial.Cell) (float64, bool) {
		return c.RatePerSecond, c.RatePerSecond > 0
	}}
}

// standing is one row's place by one measure.
type standing struct {
	Row         *row
	Cell        *viewCell // nil: not measured
	Has         bool
	Median      figure
	Low, High   float64
	Range       text   // the interval as shown; empty: there is none
	Path        string // where the interval stands
	N           int
	First, Last int  // the ranks that the intervals leave possible; 0: not ranked
	Why         text // why it is not ranked
}

// Ranked reports whether the row has a place at all.
func (s standing) Ranked() bool { return s.First > 0 }

// Rank is its place, or the places that it may have.
func (s standing) Rank() text {
	switch {
	case !s.Ranked():
		return raw("–")
	case s.First == s.Last:
		return calc(asInteger, s.First, "rank").text()
	}
	f := calc(asInteger, s.First, "rank")
	f.shown = fmt.Sprintf("%d–%d", s.First, s.Last)
	return f.text()
}

// standings ranks a profile's rows. Who may be ranked is decided by rules that
// each give their reason; a rank is shared by all whom the intervals cannot
// tell apart. Ranked rows come first, by rank, then the rest by their number.
func (g group) standings(m measure) []standing {
	var all []standing
	for _, r := range g.Rows {
		all = append(all, m.standing(r))
	}
	m.sameConditions(all)
	better := func(a, b standing) bool { // beyond doubt
		if m.HigherIsBetter {
			return a.Low > b.High
		}
		return a.High < b.Low
	}
	for i := range all {
		if !all[i].Why.Empty() {
			continue
		}
		first, last := 1, 0
		for j := range all {
			if !all[j].Why.Empty() {
				continue
			}
			last++
			if i == j {
				continue
			}
			if better(all[j], all[i]) {
				first++
			}
			if better(all[i], all[j]) {
				last--
			}
		}
		all[i].First, all[i].Last = first, last
	}
	slices.SortStableFunc(all, func(a, b standing) int {
		order := cmp.Compare(a.Median.Float(), b.Median.Float())
		if m.HigherIsBetter {
			order = -order
		}
		return cmp.Or(oneIf(b.Ranked())-oneIf(a.Ranked()), oneIf(b.Has)-oneIf(a.Has), cmp.Compare(a.First+a.Last, b.First+b.Last), order)
	})
	return all
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// standing reads a row's number, and the first reason not to rank it.
func (m measure) standing(r *row) standing {
	s := standing{Row: r}
	for _, c := range r.of(m.Test) {
		if s.Cell == nil || !measured(s.Cell.Cell) && measured(c.Cell) {
			s.Cell = c
		}
	}
	c := s.Cell
	if c == nil {
		s.Why = or(unranked(r), say("not measured"))
		return s
	}
	v, ok := m.of(c.Cell)
	s.Has = ok && measured(c.Cell)
	i := c.interval(m.Metric)
	if s.Has {
		s.Median, s.N = fig(m.Kind, v, c.path(m.Path)), c.Valid
		if i != nil {
			s.Path = c.path("spread[" + strconv.Quote(m.Metric) + "]")
			s.Median, s.Low, s.High, s.N = fig(m.Kind, i.Median, s.Path+".median"), i.Low, i.High, i.N
			s.Range = between(m.Kind, s.Path, *i)
		}
	}
	switch {
	case r.Unranked():
		s.Why = unranked(r)
	case !measured(c.Cell):
		s.Why = join(colon(), term(orDash(c.Verdict)), why(c))
	case c.Verdict == trial.VerdictSaturated:
		s.Why = join(colon(), say("saturated"), why(c))
	case c.Verdict == trial.VerdictContradiction:
		s.Why = say("contradiction")
	case !ok && m.Test == trial.TestLatency:
		s.Why = say("too few messages for a p99")
	case !ok:
		s.Why = say("not measured")
	case c.Noisy != "":
		s.Why = say("too noisy to rank: {0}", harness(c.Noisy))
	case i == nil:
		s.Why = say("no spread between trials was recorded")
	case i.N < fewestTrials:
		s.Why = many(int64(i.N), "{0} trial, and 6 are needed to bound a median", "{0} trials, and 6 are needed to bound a median", fig(asCount, i.N, s.Path+".n"))
	}
	return s
}

func unranked(r *row) text {
	switch {
	case r.Broker.Emulated:
		return say("emulated: not the real broker")
	case r.Floor():
		return say("the harness's own floor: no competitor")
	}
	return text{}
}

// sameConditions takes out of the ranking what was measured under other
// conditions than most of the rows.
func (m measure) sameConditions(all []standing) {
	count := map[string]int{}
	for _, s := range all {
		if s.Why.Empty() {
			count[m.conditions(s.Cell)]++
		}
	}
	if len(count) < 2 {
		return
	}
	most := ""
	for _, s := range all {
		if s.Why.Empty() && (most == "" || count[m.conditions(s.Cell)] > count[most]) {
			most = m.conditions(s.Cell)
		}
	}
	for i, s := range all {
		if s.Why.Empty() && m.conditions(s.Cell) != most {
			all[i].Why = say("measured under other conditions than the rest (rate, payload, consumers, handlers or batch)")
		}
	}
}

// conditions are what must be equal for two numbers to be compared.
func (m measure) conditions(c *viewCell) string {
	load := trial.Load{}
	if c.Load != nil {
		load = *c.Load
	}
	offered := c.RatePerSecond
	if m.Test == trial.TestThroughput {
		offered = 0 // what is measured is no condition
	}
	return fmt.Sprint(offered, c.PayloadBytes, c.Consumers, c.Concurrency, load.Shape, load.Keys, load.Producers, load.Batch)
}
