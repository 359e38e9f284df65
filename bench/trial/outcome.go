package trial

import (
	"context"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"queuelab/bench/ledger"
	"queuelab/bench/node"
	"queuelab/queue"
)

// Outcome is one trial as the trial log keeps it: all that its cell is made of,
// so that a run that was interrupted goes on without measuring it again.
type Outcome struct {
	Backend string `json:"backend"`
	Setting string `json:"setting"`
	Test    string `json:"test"`
	Fault   string `json:"fault"`

	Load     Load               `json:"load"`
	Run      TrialRun           `json:"run"`
	Caps     queue.Capabilities `json:"capabilities"`
	Facts    Facts              `json:"facts"`
	Settings map[string]string  `json:"settings"`

	Damage           string `json:"damage,omitempty"` // what no queue may do, whatever the oracle expects of the fault
	LostUnacked      int64  `json:"lostUnacked,omitempty"`
	LossWindowMillis int64  `json:"lossWindowMillis,omitempty"`

	// Histograms in HdrHistogram's compressed form, of nanoseconds.
	Publish          []byte `json:"publish,omitempty"`
	EndToEnd         []byte `json:"endToEnd,omitempty"`
	EndToEndFromSend []byte `json:"endToEndFromSend,omitempty"`

	SLO   *SLO      `json:"slo,omitempty"`
	Rates []scaleAt `json:"rates,omitempty"`

	WallMillis int64 `json:"wallMillis"`
}

// scaleAt is one measurement of a scaling trial.
type scaleAt struct {
	Value  int     `json:"value"`
	Rate   float64 `json:"rate"`
	Reason string  `json:"reason,omitempty"` // why there is no rate
}

// of reports whether the outcome is one of the spec's cell, under its load.
func (o Outcome) of(s Spec) bool {
	return s.names(o.Backend, o.Setting, o.Test, o.Fault) && o.Load == s.describe()
}

// outcome makes a trial's result of what was measured, or of why nothing was.
func outcome(s Spec, run TrialRun, m *measured, err error) Outcome {
	o := Outcome{Backend: s.Setting.Backend, Setting: s.Setting.label(), Test: s.Test, Fault: s.Fault, Load: s.describe(), Run: run}
	o.WallMillis = time.Since(run.StartedAt).Milliseconds()
	if err != nil {
		o.Run.Invalid = []string{err.Error()}
		return o
	}
	o.Caps, o.Facts, o.Settings, o.Damage = m.caps, m.facts, m.settings, m.damage
	o.Run.Invalid, o.Run.Saturated, o.Run.Counts, o.Run.RatePerSecond = m.invalid, m.saturated, m.report.Counts, m.rate
	o.Run.Cost, o.Run.Stamps = m.cost, m.stamps
	o.SLO, o.Rates = m.slo, m.scale
	o.LostUnacked, o.Run.Notes = m.report.LostUnacked, m.notes
	if m.report.Lost > 0 {
		o.LossWindowMillis = m.report.LossWindow.Milliseconds()
	}
	switch {
	case m.sale != nil:
		o.Run.Sale = &m.sale.Sale
		if m.sale.RecoveryMillis > 0 {
			o.Run.RecoveryMillis = &m.sale.RecoveryMillis
		}
	case m.report.Recovery != nil:
		ms := m.report.Recovery.Milliseconds()
		o.Run.RecoveryMillis = &ms
	}
	if s.Test == TestLatency && m.report.Publish != nil && m.report.EndToEnd.TotalCount() > 0 {
		o.Run.LatencyMicros = latencyOf(m.report.Latencies)
		o.Publish, o.EndToEnd, o.EndToEndFromSend = encode(m.report.Publish), encode(m.report.EndToEnd), encode(m.report.EndToEndFromSend)
	}
	return o
}

// latencyOf are the percentiles of one trial, or of several merged.
func latencyOf(l ledger.Latencies) *Latency {
	return &Latency{
		Publish: percentiles(l.Publish), EndToEnd: percentiles(l.EndToEnd),
		Lateness: percentilesOf(l.Lateness), Effect: percentilesOf(l.Effect), Acked: percentilesOf(l.Acked),
		FromSend: &FromSend{Publish: percentiles(l.PublishFromSend), EndToEnd: percentiles(l.EndToEndFromSend)},
	}
}

func encode(h *hdrhistogram.Histogram) []byte {
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil // in memory: it does not fail
	}
	return b
}

// decode returns nil for what is no histogram, as in a log that was edited.
func decode(b []byte) *hdrhistogram.Histogram {
	if len(b) == 0 {
		return nil
	}
	h, err := hdrhistogram.Decode(b)
	if err != nil {
		return nil
	}
	return h
}

// deadline is how long a trial may take at the very most: none hangs.
func (s Spec) deadline() time.Duration {
	opening, draining := 90*time.Second, node.DrainDeadline+30*time.Second
	switch s.Test {
	case TestLatency:
		return s.Load.Warmup + s.Load.Duration + opening + draining
	case TestThroughput:
		return s.Load.Saturate + opening + draining
	case TestSale:
		return 2*s.Sale.ResultDeadline + 4*time.Minute
	case TestSLO:
		return 30 * time.Minute
	case TestScalingConsumers, TestScalingConnections, TestScalingPayload, TestScalingBatch:
		return time.Duration(len(scaleValues(s.Test))) * (s.Load.Saturate + opening)
	}
	return 5 * time.Minute
}

// one runs a single trial, and never longer than its deadline.
func (r *Runner) one(ctx context.Context, s Spec, seed uint64) (*measured, error) {
	limit := s.deadline()
	trial, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	measure := r.measure
	if measure == nil {
		measure = r.Lab.measure
	}
	m, err := measure(trial, s, seed)
	if err != nil && trial.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("the trial did not end within %v: %w", limit, err)
	}
	if err == nil && len(m.invalid) == 0 && m.saturated == "" {
		return m, nil
	}
	// A broker that died is the reason for whatever else went wrong, and must
	// be there again for the next trial.
	if why := r.Lab.revive(ctx, s); why != "" {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", why, err)
		}
		m.invalid = append([]string{why}, m.invalid...)
	}
	return m, err
}

func (l *Lab) measure(ctx context.Context, s Spec, seed uint64) (*measured, error) {
	switch s.Test {
	case TestLatency:
		m, err := l.latency(ctx, s, seed)
		if err == nil && len(m.invalid) == 0 {
			m.stamps, err = l.keepStamps(s, m)
		}
		return m, err
	case TestThroughput:
		return l.throughput(ctx, s)
	case TestCrash, TestFault:
		return l.crash(ctx, s)
	case TestSale:
		return l.sale(ctx, s, seed)
	case TestSLO:
		return l.highest(ctx, s, seed)
	case TestScalingConsumers, TestScalingConnections, TestScalingPayload, TestScalingBatch:
		return l.scale(ctx, s, seed)
	}
	return nil, fmt.Errorf("unknown test %q", s.Test)
}

// revive says why the setting's broker does not serve, and starts it again
// where it is ours; "" where it serves.
func (l *Lab) revive(ctx context.Context, s Spec) string {
	if s.Setting.Broker == "" || ctx.Err() != nil {
		return ""
	}
	b, err := l.brokerOf(ctx, s)
	if err != nil {
		return ""
	}
	asking, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err = b.Ready(asking)
	if err == nil || ctx.Err() != nil {
		return ""
	}
	why := fmt.Sprintf("the broker died or hung during the trial (%v)", err)
	if b.External() {
		return why
	}
	starting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_ = b.Kill(starting) // it may hang; where it is dead there is nothing to kill
	if err := b.Restart(starting); err != nil {
		return fmt.Sprintf("%s, and it does not start again: %v", why, err)
	}
	return why
}
