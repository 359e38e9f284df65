package choose

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"queuelab/bench/trial"
)

// fewestForP99 messages leave ten beyond the 99th percentile.
const fewestForP99 = 1000

// holdsRate judges by the rates that were held on the machine of the result, in a
// closed loop, under a promise, or as offered.
func (c *candidate) holdsRate() Reason {
	r := Reason{Verdict: Unknown, Why: "its rate was not measured", Measure: "queuelab run --suite quick --tests throughput --backends " + c.String()}
	if m := c.e.first(c.String(), trial.TestThroughput); m != nil && m.RatePerSecond > 0 {
		i := intervalOf(m, "ratePerSecond")
		median, low, high := weigh(i, m.RatePerSecond)
		p := m.proof(fmt.Sprintf("%s held, with payloads of %d bytes", perSecond(median), m.PayloadBytes), boundOf(i, perSecond))
		switch {
		case low >= c.needs.Rate:
			return Reason{Verdict: Yes, Why: p.Value, Proof: []Proof{p}}
		case high < c.needs.Rate:
			r = Reason{Verdict: No, Why: "on that machine no more than " + p.Value, Proof: []Proof{p}}
		default:
			r.Why, r.Proof = "its trials lie on both sides of that rate", []Proof{p}
		}
	}
	for _, m := range c.e.cells(c.String(), "", trial.TestSLO, trial.TestLatency) {
		held := m.RatePerSecond
		if m.Test == trial.TestSLO {
			if m.SLO == nil {
				continue
			}
			held = m.SLO.HighestRate
		}
		if held >= c.needs.Rate && m.Verdict != trial.VerdictSaturated {
			p := m.proof(perSecond(held)+" offered and held", "")
			return Reason{Verdict: Yes, Why: p.Value, Proof: []Proof{p}}
		}
	}
	return r
}

// fastEnough judges the p99 end to end, at the rate that is asked for or at a
// higher one: what is fast at a low rate need not be so at that.
func (c *candidate) fastEnough() Reason {
	limit := float64(c.needs.P99) / float64(time.Microsecond)
	at, rate := "", ""
	if c.needs.Rate > 0 {
		at, rate = " at "+perSecond(c.needs.Rate), fmt.Sprintf(" --rate %.0f", c.needs.Rate)
	}
	r := Reason{Verdict: Unknown, Why: "its p99" + at + " was not measured", Measure: "queuelab run --suite quick --tests latency" + rate + " --backends " + c.String()}
	told := map[float64]bool{} // rates, of which the first result that has it counts
	var yes, no *Proof
	for _, m := range c.e.cells(c.String(), "", trial.TestLatency) {
		if m.LatencyMicros == nil || m.LatencyMicros.EndToEnd.N < fewestForP99 || told[m.RatePerSecond] {
			continue
		}
		told[m.RatePerSecond] = true
		i := intervalOf(m, "endToEnd.p99")
		median, low, high := weigh(i, float64(m.LatencyMicros.EndToEnd.P99))
		p := m.proof(fmt.Sprintf("p99 %s at %s", micros(median), perSecond(m.RatePerSecond)), boundOf(i, micros))
		switch {
		case low > limit && (c.needs.Rate == 0 || m.RatePerSecond <= c.needs.Rate): // at more it is no faster
			no = &p
		case m.Verdict == trial.VerdictSaturated:
			r.Why, r.Proof = "that rate was not held", []Proof{p}
		case high <= limit && m.RatePerSecond >= c.needs.Rate:
			yes = &p
		case low <= limit && high > limit:
			r.Why, r.Proof = "its trials lie on both sides of that p99", []Proof{p}
		default: // slow at a higher rate than is asked for, or fast at a lower one
			r.Proof = []Proof{p}
		}
	}
	for _, m := range c.e.cells(c.String(), "", trial.TestSLO) {
		if m.SLO == nil {
			continue
		}
		for _, pt := range m.SLO.Curve {
			if pt.LatencyMicros == nil || pt.LatencyMicros.EndToEnd.N < fewestForP99 || pt.Offered < c.needs.Rate || pt.Achieved < 0.99*pt.Offered {
				continue
			}
			if p99 := float64(pt.LatencyMicros.EndToEnd.P99); p99 <= limit {
				p := m.proof(fmt.Sprintf("p99 %s at %s", micros(p99), perSecond(pt.Offered)), "one step of a search")
				yes = &p
			}
		}
	}
	// Slow at no more than is asked for is slow, whatever else was seen; where no rate
	// is asked for, fast at any is fast.
	switch {
	case no != nil && (yes == nil || c.needs.Rate > 0):
		return Reason{Verdict: No, Why: no.Value, Proof: []Proof{*no}}
	case yes != nil:
		return Reason{Verdict: Yes, Why: yes.Value, Proof: []Proof{*yes}}
	}
	return r
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// intervalOf is the cell's own; nil: it has none.
func intervalOf(m *measurement, metric string) *trial.Interval {
	if i, ok := m.Spread[metric]; ok && i.N > 0 {
		return &i
	}
	return nil
}

// Memory that a waiting message takes beside its body, for a guess that is meant
// to be too high, and what any machine has to spare.
const (
	overheadBytes = 300
	spareBytes    = 1 << 30
)

// holdsBacklog judges whether so many messages can wait, consumers gone.
func (c *candidate) holdsBacklog() Reason {
	if r := c.stored(); r.Verdict != Yes {
		return r
	}
	if c.claims.DropsOldest {
		return c.bounded()
	}
	if limit, name := c.limit(); limit > 0 && limit < c.needs.Backlog {
		why := fact{fmt.Sprintf("it takes %s and no more: %s", thousands(limit), name), "queuelab list"}
		return Reason{Verdict: No, Why: why.What, Proof: []Proof{document(why)}}
	}
	payload, host := int64(0), int64(0)
	for _, m := range c.e.cells(c.String(), "", trial.TestCrash, trial.TestFault, trial.TestLatency, trial.TestThroughput) {
		if held := m.BacklogAtFault / int64(m.Valid); held >= c.needs.Backlog {
			p := m.proof(thousands(held)+" waited, with no consumer", "")
			return Reason{Verdict: Yes, Why: p.Value, Proof: []Proof{p}}
		}
		payload, host = max(payload, int64(m.PayloadBytes)), max(host, m.host.MemoryBytes)
	}
	f := factsOf(c.Backend)
	if !f.InMemory {
		return Reason{Verdict: Yes, Why: f.Backlog.What, Proof: []Proof{document(f.Backlog)}}
	}
	if payload == 0 {
		payload = 100
	}
	takes := float64(c.needs.Backlog) * float64(payload+overheadBytes)
	has := fact{fmt.Sprintf("%s: about %s with payloads of %d bytes", f.Backlog.What, size(takes), payload), f.Backlog.Source + ", and a guess of " + strconv.Itoa(overheadBytes) + " bytes beside each"}
	if host > 0 {
		has.What += fmt.Sprintf(", of the %s of the machine that measured", size(float64(host)))
	}
	r := Reason{Verdict: Yes, Why: has.What, Proof: []Proof{document(has)}}
	switch {
	case host > 0 && takes > float64(host)/2:
		r.Verdict = No
	case host == 0 && takes > spareBytes:
		r.Verdict = Unknown
	}
	return r
}

// limit is how many messages the setting's own URL lets wait; 0: it says nothing.
func (c *candidate) limit() (int64, string) {
	q, err := url.ParseQuery(c.Query)
	if err != nil {
		return 0, ""
	}
	for _, name := range []string{"capacity", "max-length", "maxlen"} {
		if n, err := strconv.ParseInt(q.Get(name), 10, 64); err == nil && n > 0 {
			return n, name + "=" + q.Get(name)
		}
	}
	return 0, ""
}
