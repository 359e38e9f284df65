package trial

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"queuelab/bench/ledger"
	"queuelab/bench/stat"
	"queuelab/queue"
)

// fold folds the outcomes of a spec's trials into its cell, and judges it.
func fold(s Spec, row Row, outcomes []Outcome, seed uint64, c *Cell) {
	c.Trials = s.Trials
	sum := tally{competing: s.Test == TestScalingConsumers || s.Load.Consumers > 1}
	for _, o := range outcomes {
		c.Runs = append(c.Runs, o.Run)
		c.InvalidReasons = append(c.InvalidReasons, o.Run.Invalid...)
		c.WallMillis += o.WallMillis
		if o.Settings != nil {
			c.EffectiveSettings = o.Settings
			c.Guarantee, c.Confirm = o.Caps.Guarantee.String(), o.Caps.Confirm.String()
		}
		if len(o.Run.Invalid) > 0 {
			continue
		}
		c.Valid++
		sum.add(o)
	}
	sum.fill(s, c)
	c.spread(seed)
	c.loss()
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
	if n := len(sum.saturated); n > 0 && c.Verdict != VerdictSaturated && c.Noisy == "" {
		c.Noisy = fmt.Sprintf("%d of %d trials did not hold the load: %s", n, c.Valid, sum.saturated[0])
	}
}

// verdict judges the sums of the counts, and each trial by itself.
func (t *tally) verdict(row Row, sums ledger.Counts) (verdict, note string) {
	stranded := sums.Stranded
	if t.caps.MayStrand {
		sums.Stranded = 0
		defer func() {
			if stranded > 0 {
				note += fmt.Sprintf("; %d stranded, as this queue says that they may", stranded)
			}
		}()
	}
	verdict, note = Verdict(row, t.facts, sums, len(t.each))
	// A sum can hide what a single trial shows.
	for _, o := range t.each {
		if t.caps.MayStrand {
			o.Run.Stranded = 0
		}
		v, n := Verdict(row, o.Facts, o.Run.Counts, 1)
		if v == VerdictContradiction && o.LostUnacked > 0 {
			// Whoever did it, the queue or the consumer, it shows as this.
			n += fmt.Sprintf("; %d of the lost had been delivered and not acked, and the queue forgot them all the same: acked early, or not kept", o.LostUnacked)
		}
		if v == VerdictContradiction || v == VerdictOracleUpdate && verdict == VerdictAsExpected {
			verdict, note = v, n
		}
	}
	switch {
	case t.damage != "":
		return VerdictContradiction, t.damage
	case row.Fault == FaultNone && t.caps.OrderedPerKey && !t.competing && sums.Reordered > 0 && verdict != VerdictContradiction:
		return VerdictContradiction, fmt.Sprintf("%d reordered without a fault, and the queue claims to keep the order of a key", sums.Reordered)
	case 2*len(t.saturated) >= len(t.each) && len(t.saturated) > 0 && verdict != VerdictContradiction: // too much load is no excuse for a loss
		return VerdictSaturated, t.saturated[0]
	}
	return verdict, note
}

func firstOf(reasons []string) string {
	if len(reasons) == 0 {
		return "no reason was noted"
	}
	return reasons[0]
}

// tally sums valid trials.
type tally struct {
	each        []Outcome
	competing   bool // several consumers: what one of them sees in order is not in order over all
	facts       Facts
	caps        queue.Capabilities
	publish     *hdrhistogram.Histogram
	endToEnd    *hdrhistogram.Histogram
	fromSend    *hdrhistogram.Histogram
	recoveries  []float64 // ms
	rates       []float64
	lossWindows []float64 // ms, of the trials that lost
	saturated   []string  // of each trial that was
	damage      string
}

func (t *tally) add(o Outcome) {
	t.each = append(t.each, o)
	t.caps = o.Caps
	t.facts.Add(o.Facts)
	t.publish, t.endToEnd, t.fromSend = merge(t.publish, decode(o.Publish)), merge(t.endToEnd, decode(o.EndToEnd)), merge(t.fromSend, decode(o.EndToEndFromSend))
	if o.Run.RecoveryMillis != nil {
		t.recoveries = append(t.recoveries, float64(*o.Run.RecoveryMillis))
	}
	t.rates = append(t.rates, o.Run.RatePerSecond)
	if o.Run.Counts.Lost > 0 {
		t.lossWindows = append(t.lossWindows, float64(o.LossWindowMillis))
	}
	if o.Damage != "" {
		t.damage = o.Damage
	}
	if o.Run.Saturated != "" {
		t.saturated = append(t.saturated, o.Run.Saturated)
	}
}

func merge(into, h *hdrhistogram.Histogram) *hdrhistogram.Histogram {
	if into == nil || h == nil {
		return cmp.Or(into, h)
	}
	into.Merge(h) // equal ranges: nothing is dropped
	return into
}

// fill writes the sums into the cell.
func (t *tally) fill(s Spec, c *Cell) {
	c.Consumers, c.Concurrency = max(1, s.Load.Consumers), 1
	c.LoopModel = "open"
	switch s.Test {
	case TestThroughput, TestScalingConsumers, TestScalingConnections, TestScalingPayload, TestScalingBatch:
		c.LoopModel = "closed"
	case TestSale:
		c.LoopModel, c.PayloadBytes, c.Concurrency = "closed", 0, saleLanes
	case TestCrash, TestFault:
		if strings.HasPrefix(s.Setting.Broker, "rabbitmq") {
			c.Prefetch = s.Load.Prefetch
		}
	}
	if s.Test != TestSale {
		l := s.describe()
		c.Load = &l
	}
	if len(t.each) == 0 {
		return
	}
	for _, o := range t.each {
		addCounts(&c.Counts, o.Run.Counts)
		c.BacklogAtFault += o.Facts.Backlog
		if o.Run.Sale != nil {
			if c.Sale == nil {
				c.Sale = &Sale{}
			}
			addSale(c.Sale, *o.Run.Sale)
		}
	}
	if s.Test == TestFault {
		dirty := t.facts.DirtyBytes
		c.DirtyBytes = &dirty
		c.CrashLost, c.CrashUnknown = t.facts.CrashLost, t.facts.CrashUnknown
	}
	if s.crashes() {
		with := len(t.lossWindows)
		c.CrashesWithLoss = &with
	}
	if len(t.lossWindows) > 0 && s.Fault != FaultNone && s.crashes() {
		c.LossWindowMillis = &LossWindow{P50: int64(math.Round(stat.Median(t.lossWindows))), Max: int64(slices.Max(t.lossWindows))}
	}
	c.RatePerSecond = stat.Median(t.rates)
	if len(t.recoveries) > 0 {
		c.RecoveryMillis = &Recovery{P50: int64(math.Round(stat.Median(t.recoveries))), Max: int64(slices.Max(t.recoveries))}
	}
	t.fillLatency(c)
	c.Cost = t.cost()
	switch {
	case s.Test == TestSLO:
		c.SLO = t.search()
	case c.LoopModel == "closed" && s.Test != TestThroughput && s.Test != TestSale:
		c.Scaling = t.scaling(s.Test, c.Seed)
	}
}

// fillLatency takes percentiles of all trials' messages together: an average of
// percentiles is the percentile of nothing.
func (t *tally) fillLatency(c *Cell) {
	if t.publish == nil || t.endToEnd == nil {
		return
	}
	l := &Latency{Publish: percentiles(t.publish), EndToEnd: percentiles(t.endToEnd)}
	last := t.each[len(t.each)-1].Run.LatencyMicros
	if last != nil { // of one trial: they are shown, never ranked
		l.Lateness, l.Effect, l.Acked, l.FromSend = last.Lateness, last.Effect, last.Acked, last.FromSend
	}
	if t.fromSend != nil && l.FromSend != nil {
		fromSend := *l.FromSend
		fromSend.EndToEnd = percentiles(t.fromSend)
		l.FromSend = &fromSend
	}
	c.LatencyMicros = l
	c.Curve = curve(t.publish, t.endToEnd, t.fromSend)
}

// curve takes the points as far out as ten messages lie beyond.
func curve(publish, endToEnd, fromSend *hdrhistogram.Histogram) []CurvePoint {
	n := float64(min(publish.TotalCount(), endToEnd.TotalCount()))
	var points []CurvePoint
	for _, q := range curveQuantiles() {
		if n*(1-q) < 10 {
			break
		}
		us := func(h *hdrhistogram.Histogram) int64 {
			if h == nil {
				return 0
			}
			return (h.ValueAtQuantile(100*q) + 500) / 1000
		}
		points = append(points, CurvePoint{Q: q, Publish: us(publish), EndToEnd: us(endToEnd), EndToEndFromSend: us(fromSend)})
	}
	return points
}

// curveQuantiles are ten to each nine, and those that have a name.
func curveQuantiles() []float64 {
	qs := []float64{0.5}
	for step := range 60 {
		q := math.Round((1-math.Pow(10, -float64(step)/10))*1e7) / 1e7
		if !slices.Contains(qs, q) {
			qs = append(qs, q)
		}
	}
	slices.Sort(qs)
	return qs
}

// cost is the median of each cost by itself, the broker's over the trials in
// which it was known.
func (t *tally) cost() *Cost {
	var all, known []*Cost
	for _, o := range t.each {
		if c := o.Run.Cost; c != nil {
			all = append(all, c)
			if c.BrokerKnown {
				known = append(known, c)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	median := func(costs []*Cost, get func(*Cost) float64) float64 {
		var xs []float64
		for _, c := range costs {
			xs = append(xs, get(c))
		}
		return stat.Median(xs)
	}
	return &Cost{
		ClientCPUSeconds:  median(all, func(c *Cost) float64 { return c.ClientCPUSeconds }),
		ClientMemoryBytes: int64(median(all, func(c *Cost) float64 { return float64(c.ClientMemoryBytes) })),
		BrokerCPUSeconds:  median(known, func(c *Cost) float64 { return c.BrokerCPUSeconds }),
		BrokerMemoryBytes: int64(median(known, func(c *Cost) float64 { return float64(c.BrokerMemoryBytes) })),
		BrokerDiskBytes:   int64(median(known, func(c *Cost) float64 { return float64(c.BrokerDiskBytes) })),
		BrokerKnown:       len(known) > 0,
	}
}

// search is the one in the middle, by the rate that it found.
func (t *tally) search() *SLO {
	var found []*SLO
	for _, o := range t.each {
		if o.SLO != nil {
			found = append(found, o.SLO)
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortStableFunc(found, func(a, b *SLO) int { return cmp.Compare(a.HighestRate, b.HighestRate) })
	return found[(len(found)-1)/2]
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Hour), 3) }

// percentilesOf is nil where there is nothing to tell.
func percentilesOf(h *hdrhistogram.Histogram) *Percentiles {
	if h == nil || h.TotalCount() == 0 {
		return nil
	}
	p := percentiles(h)
	return &p
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
	// Percentiles do not add up: the worst sale is shown, and each has its own in Runs.
	into.AnswerMicros, into.CommittedMicros = worse(into.AnswerMicros, s.AnswerMicros), worse(into.CommittedMicros, s.CommittedMicros)
}

func worse(a, b *Percentiles) *Percentiles {
	if a == nil || b != nil && b.P99 > a.P99 {
		return b
	}
	return a
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
