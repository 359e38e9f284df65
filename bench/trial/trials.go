package trial

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"queuelab/bench/ledger"
	"queuelab/queue"
)

// trials runs every trial of a cell, sums up the valid ones, and judges.
func (r *Runner) trials(ctx context.Context, s Spec, row Row, c *Cell) {
	c.Trials = s.Trials
	var sum tally
	for i := range s.Trials {
		m, err := r.one(ctx, s, r.Seed+uint64(i))
		switch {
		case err != nil:
			c.InvalidReasons = append(c.InvalidReasons, err.Error())
			continue
		case len(m.invalid) > 0:
			c.InvalidReasons = append(c.InvalidReasons, m.invalid...)
		}
		c.EffectiveSettings = m.settings
		c.Guarantee, c.Confirm = m.caps.Guarantee.String(), m.caps.Confirm.String()
		if len(m.invalid) > 0 {
			continue
		}
		c.Valid++
		sum.add(m)
	}
	sum.fill(s, c)
	if c.Valid == 0 {
		c.Verdict = VerdictInvalid
		c.Note = "no valid trial: " + firstOf(c.InvalidReasons)
		return
	}
	c.Expected = row.Expect(sum.facts)
	if s.Test == TestSale {
		c.Verdict, c.Note = judgeSale(row, sum.caps.Lossy(), c)
		return
	}
	c.Verdict, c.Note = sum.verdict(row, c.Counts)
}

// verdict judges the sums of the counts, and each trial by itself.
func (t *tally) verdict(row Row, sums ledger.Counts) (verdict, note string) {
	verdict, note = Verdict(row, t.facts, sums, len(t.each))
	// A sum can hide what a single trial shows.
	for _, m := range t.each {
		v, n := Verdict(row, m.facts, m.report.Counts, 1)
		if v == VerdictContradiction && m.report.LostUnacked > 0 {
			// Whoever did it, the queue or the consumer, it shows as this.
			n += fmt.Sprintf("; %d of the lost had been delivered and not acked, and the queue forgot them all the same: acked early, or not kept", m.report.LostUnacked)
		}
		if v == VerdictContradiction || v == VerdictOracleUpdate && verdict == VerdictAsExpected {
			verdict, note = v, n
		}
	}
	switch {
	case t.damage != "":
		return VerdictContradiction, t.damage
	case row.Fault == FaultNone && t.caps.OrderedPerKey && sums.Reordered > 0 && verdict != VerdictContradiction:
		return VerdictContradiction, fmt.Sprintf("%d reordered without a fault, and the queue claims to keep the order of a key", sums.Reordered)
	case t.saturated != "" && verdict != VerdictContradiction: // too much load is no excuse for a loss
		return VerdictSaturated, t.saturated
	}
	return verdict, note
}

func firstOf(reasons []string) string {
	if len(reasons) == 0 {
		return "no reason was noted"
	}
	return reasons[0]
}

// one runs a single trial.
func (r *Runner) one(ctx context.Context, s Spec, seed uint64) (*measured, error) {
	switch s.Test {
	case TestLatency:
		return r.Lab.latency(ctx, s)
	case TestThroughput:
		return r.Lab.throughput(ctx, s)
	case TestCrash:
		return r.Lab.crash(ctx, s)
	case TestSale:
		return r.Lab.sale(ctx, s, seed)
	}
	return nil, fmt.Errorf("unknown test %q", s.Test)
}

// tally sums valid trials.
type tally struct {
	each       []*measured
	facts      Facts
	caps       queue.Capabilities
	publish    *hdrhistogram.Histogram
	endToEnd   *hdrhistogram.Histogram
	recoveries []int64 // ms
	rates      []float64
	lossWindow time.Duration
	saturated  string
	damage     string
}

func (t *tally) add(m *measured) {
	t.each = append(t.each, m)
	t.caps = m.caps
	t.facts.add(m.facts)
	if m.report.Publish != nil {
		t.publish, t.endToEnd = merge(t.publish, m.report.Publish), merge(t.endToEnd, m.report.EndToEnd)
	}
	switch {
	case m.sale != nil && m.sale.RecoveryMillis > 0:
		t.recoveries = append(t.recoveries, m.sale.RecoveryMillis)
	case m.report.Recovery != nil:
		t.recoveries = append(t.recoveries, m.report.Recovery.Milliseconds())
	}
	t.rates = append(t.rates, m.rate)
	if m.report.Lost > 0 {
		t.lossWindow = max(t.lossWindow, m.report.LossWindow)
	}
	if m.damage != "" {
		t.damage = m.damage
	}
	if m.saturated != "" {
		t.saturated = m.saturated
	}
}

func merge(into, h *hdrhistogram.Histogram) *hdrhistogram.Histogram {
	if into == nil {
		return h
	}
	into.Merge(h) // equal ranges: nothing is dropped
	return into
}

// fill writes the sums into the cell.
func (t *tally) fill(s Spec, c *Cell) {
	c.Consumers, c.Concurrency = 1, 1
	c.LoopModel = "open"
	switch s.Test {
	case TestThroughput:
		c.LoopModel = "closed"
	case TestSale:
		c.LoopModel, c.PayloadBytes, c.Concurrency = "closed", 0, saleLanes
	case TestCrash:
		if s.Setting.Backend == "rabbitmq" {
			c.Prefetch = s.Load.Prefetch
		}
	}
	if len(t.each) == 0 {
		return
	}
	for _, m := range t.each {
		addCounts(&c.Counts, m.report.Counts)
		c.BacklogAtFault += m.facts.Backlog
		if m.sale != nil {
			if c.Sale == nil {
				c.Sale = &Sale{}
			}
			addSale(c.Sale, m.sale.Sale)
		}
	}
	if c.Lost > 0 && s.Fault != FaultNone && s.Test == TestCrash {
		ms := t.lossWindow.Milliseconds()
		c.LossWindowMillis = &ms
	}
	slices.Sort(t.rates)
	c.RatePerSecond = t.rates[len(t.rates)/2]
	if len(t.recoveries) > 0 {
		slices.Sort(t.recoveries)
		c.RecoveryMillis = &Recovery{P50: t.recoveries[len(t.recoveries)/2], Max: t.recoveries[len(t.recoveries)-1]}
	}
	if s.Test == TestLatency && t.publish != nil {
		c.LatencyMicros = &Latency{Publish: percentiles(t.publish), EndToEnd: percentiles(t.endToEnd)}
	}
}

func percentiles(h *hdrhistogram.Histogram) Percentiles {
	us := func(q float64) int64 { return (h.ValueAtQuantile(q) + 500) / 1000 }
	return Percentiles{P50: us(50), P90: us(90), P99: us(99), P999: us(99.9), Max: (h.Max() + 500) / 1000, N: h.TotalCount()}
}

func addCounts(into *ledger.Counts, c ledger.Counts) {
	into.Sent += c.Sent
	into.Accepted += c.Accepted
	into.Rejected += c.Rejected
	into.Unknown += c.Unknown
	into.Unconfirmed += c.Unconfirmed
	into.Lost += c.Lost
	into.Recovered += c.Recovered
	into.Phantom += c.Phantom
	into.RejectedDelivered += c.RejectedDelivered
	into.Redelivered += c.Redelivered
	into.ProducerDuplicates += c.ProducerDuplicates
	into.EffectDuplicates += c.EffectDuplicates
	into.Reordered += c.Reordered
	into.Stranded += c.Stranded
	into.DeadLettered += c.DeadLettered
	into.PolicyDropped += c.PolicyDropped
}

func addSale(into *Sale, s Sale) {
	into.Buyers += s.Buyers
	into.Stock += s.Stock
	into.Sold += s.Sold
	into.Oversold += s.Oversold
	into.Undersold += s.Undersold
	into.Double += s.Double
	into.Waiting += s.Waiting
	into.LostOrders += s.LostOrders
}

// sale runs one sale as a trial.
func (l *Lab) sale(ctx context.Context, s Spec, seed uint64) (*measured, error) {
	out, settings, err := l.sell(ctx, s.Setting, s.Fault, s.Sale, seed)
	if err != nil {
		return nil, err
	}
	m := &measured{caps: out.caps, settings: settings, rate: out.PerSecond, sale: out}
	m.report.Sent, m.report.Accepted, m.report.Rejected, m.report.Unknown = out.Sent, out.Queued, out.Refused, out.Unanswered
	m.report.Lost, m.report.EffectDuplicates = int64(out.LostOrders), int64(out.Double)
	if out.Buyers < out.Stock {
		m.invalid = append(m.invalid, "fewer buyers than stock: underselling would not show")
	}
	switch {
	case out.Queued == 0:
		m.invalid = append(m.invalid, "no buyer was admitted")
	case s.Fault == FaultServiceKill && out.QueuedAtKill >= int64(out.Stock):
		m.invalid = append(m.invalid, "the sale was over when the service was killed")
	}
	return m, nil
}
