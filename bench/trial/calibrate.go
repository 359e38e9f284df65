package trial

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"queuelab/bench/node"
)

// Calibration is what the harness reported of queues with known faults.
type Calibration struct {
	Floor *Floor            `json:"floor"`
	Cases []CalibrationCase `json:"cases"`
}

// CalibrationCase is one queue. Every number of Injected must be reported:
// counts exactly, times within the tolerance.
type CalibrationCase struct {
	Name     string             `json:"name"`
	About    string             `json:"about"`
	Injected map[string]float64 `json:"injected"`
	Reported map[string]float64 `json:"reported"`
	OK       bool               `json:"ok"`
	Attempts int                `json:"attempts"`      // a machine that stalls moves a time: such a case is measured again
	Why      string             `json:"why,omitempty"` // what was not reported as injected
}

// tolerance is how far a time may be from theory.
const tolerance = 0.05

// calibration is a case to be run.
type calibration struct {
	name, about string
	fake        node.Fake
	load        LoadParams
	injected    map[string]float64 // counts that are absent are 0
}

// Calibrations lists the names of the cases.
func Calibrations() []string {
	var names []string
	for _, c := range calibrations() {
		names = append(names, c.name)
	}
	for _, c := range written() {
		names = append(names, c.name)
	}
	return names
}

// frozen is latency(q) of messages that come at a rate to one server that needs
// service for each, and once stands still for freeze, over a run of length span:
// the share f of the messages waits, each as long as what is left of the freeze
// and of the queue before it.
func frozen(q, rate float64, service, freeze, span time.Duration) time.Duration {
	f := freeze.Seconds() / span.Seconds() / (1 - rate*service.Seconds())
	return time.Duration(float64(freeze) * (1 - (1-q)/f))
}

func calibrations() []calibration {
	const rate, count = 1000, 4000
	load := LoadParams{Rate: rate, Duration: count / rate * time.Second, Payload: 100}
	one := load // one message at a time, all of one key, so that they have an order
	one.InFlight, one.Keys = 1, "uniform:1"
	long := one
	long.Duration = 30 * time.Second
	slow := load
	freeze := node.Fake{Service: 200 * time.Microsecond, Rate: rate, FreezeAt: 10 * time.Second, FreezeFor: time.Second}
	hits := func(every float64) float64 { return math.Floor(count / every) }
	return []calibration{
		{"frozen", "1,000/s for 30 s to one server that stands still for one of them: latency must count from the due time", freeze, long, map[string]float64{
			"sent": 30_000, "accepted": 30_000, "samples": 30_000, "saturated": 1,
			"p97Millis":      frozen(0.97, rate, freeze.Service, freeze.FreezeFor, long.Duration).Seconds() * 1000,
			"p99Millis":      frozen(0.99, rate, freeze.Service, freeze.FreezeFor, long.Duration).Seconds() * 1000,
			"p99.9Millis":    frozen(0.999, rate, freeze.Service, freeze.FreezeFor, long.Duration).Seconds() * 1000,
			"maxMillis":      1000,
			"fromSendMillis": 1000, // the most of the uncorrected view, which one message alone is in
		}},
		{"slow consumer", "1,000/s for 4 s to a consumer that takes 500/s: a backlog grows, and latency is not clipped", node.Fake{HandleFor: 2 * time.Millisecond}, slow, map[string]float64{
			"samples": count, "saturated": 1, "maxMillis": 4000,
		}},
		{"perfect", "nothing is injected, and nothing is reported", node.Fake{}, load, map[string]float64{"samples": count}},
		{"dropping", "one in 1,000 is accepted and never delivered", node.Fake{DropEvery: 1000}, load, map[string]float64{"lost": hits(1000), "samples": count - hits(1000)}},
		{"duplicating", "one in 100 is delivered twice", node.Fake{DuplicateEvery: 100}, load, map[string]float64{"redelivered": hits(100), "samples": count}},
		{"reordering", "one in 64 is delivered after the next", node.Fake{ReorderEvery: 64}, one, map[string]float64{"reordered": hits(64), "samples": count}},
		{"rejecting", "one in 50 is rejected", node.Fake{RejectEvery: 50}, load, map[string]float64{"rejected": hits(50), "accepted": count - hits(50), "samples": count - hits(50), "saturated": 1}},
		{"rejecting falsely", "one in 50 is rejected and delivered all the same", node.Fake{RejectDeliverEvery: 50}, load, map[string]float64{
			"rejected": hits(50), "rejectedDelivered": hits(50), "accepted": count - hits(50), "samples": count, "saturated": 1}},
		{"silent", "one in 50 gets no answer and is not delivered: unknown, not lost", node.Fake{UnknownEvery: 50}, load, map[string]float64{
			"unknown": hits(50), "accepted": count - hits(50), "samples": count - hits(50), "saturated": 1}},
		{"silent but delivering", "one in 50 gets no answer and is delivered: recovered", node.Fake{UnknownDeliverEvery: 50}, load, map[string]float64{
			"unknown": hits(50), "recovered": hits(50), "accepted": count - hits(50), "samples": count, "saturated": 1}},
		{"retried", "the producer publishes one in 100 twice: its duplicate, not the queue's", node.Fake{RetryEvery: 100}, load, map[string]float64{"producerDuplicates": hits(100), "samples": count}},
		{"inventing", "one in 500 brings a message that nobody sent", node.Fake{PhantomEvery: 500}, load, map[string]float64{"phantom": hits(500), "samples": count}},
		{"skewed clock", "the consumer's clock is 5 ms behind: the trial is invalid, and no negative latency is dropped or turned round", node.Fake{Skew: -5 * time.Millisecond}, load, map[string]float64{
			"samples": 0, "invalid": 1, "lowestMillis": -5}},
	}
}

// Calibrate runs the cases of those names, all where there are none, through the
// same nodes, ledger and account that every trial goes through. A case that only
// a time is off of is measured so many times at most.
func (l *Lab) Calibrate(ctx context.Context, names []string, attempts int, each func(CalibrationCase)) (Calibration, error) {
	for _, n := range names {
		if !slices.Contains(Calibrations(), n) {
			return Calibration{}, fmt.Errorf("unknown case %q: the cases are %s", n, strings.Join(Calibrations(), ", "))
		}
	}
	wanted := func(name string) bool { return len(names) == 0 || slices.Contains(names, name) }
	out := Calibration{Cases: []CalibrationCase{}}
	var err error
	if out.Floor, err = l.Floor(ctx); err != nil {
		return out, err
	}
	for _, c := range calibrations() {
		if !wanted(c.name) {
			continue
		}
		k := CalibrationCase{Name: c.name, About: c.about, Injected: c.expected()}
		for !k.OK && k.Attempts < attempts {
			if k.Reported, err = l.calibrate(ctx, c); err != nil {
				return out, fmt.Errorf("calibrate, %s: %w", c.name, err)
			}
			k.Attempts++
			if k.judge(); !k.onlyTimes() {
				break // counts do not depend on the machine
			}
		}
		out.Cases = append(out.Cases, k)
		each(k)
	}
	for _, c := range written() {
		if !wanted(c.name) {
			continue
		}
		reported, err := c.report(l)
		if err != nil {
			return out, fmt.Errorf("calibrate, %s: %w", c.name, err)
		}
		k := CalibrationCase{Name: c.name, About: c.about, Injected: c.injected, Reported: reported, Attempts: 1}
		k.judge()
		out.Cases = append(out.Cases, k)
		each(k)
	}
	return out, nil
}

// calibrate measures one queue as a latency trial.
func (l *Lab) calibrate(ctx context.Context, c calibration) (map[string]float64, error) {
	fake := c.fake
	s := Spec{Setting: Settings()[0], Test: TestLatency, Fault: FaultNone, Trials: 1, Load: c.load}
	s.Setting.Fake = &fake
	ctx, cancel := context.WithTimeout(ctx, s.deadline())
	defer cancel()
	m, err := l.latency(ctx, s, 1)
	if err != nil {
		return nil, err
	}
	row, err := Lookup(s.Setting.String(), FaultNone)
	if err != nil {
		return nil, err
	}
	var cell Cell
	cell.Test = TestLatency
	o := outcome(s, TrialRun{N: 1, StartedAt: time.Now()}, m, nil)
	fold(s, row, []Outcome{o}, 1, &cell)
	return reportOf(m, cell), nil
}

// expected is what must be reported: the counts that the case does not name are
// those of a queue without a fault.
func (c calibration) expected() map[string]float64 {
	n := c.load.Rate * c.load.Duration.Seconds()
	want := map[string]float64{"sent": n, "accepted": n, "invalid": 0} // a busy machine may be late: that is no fault of the harness
	for _, count := range []string{"lost", "rejected", "unknown", "recovered", "phantom", "rejectedDelivered", "redelivered", "producerDuplicates", "effectDuplicates", "reordered", "stranded"} {
		want[count] = 0
	}
	maps.Copy(want, c.injected)
	return want
}

func reportOf(m *measured, cell Cell) map[string]float64 {
	c := m.report.Counts
	got := map[string]float64{
		"sent": float64(c.Sent), "accepted": float64(c.Accepted), "rejected": float64(c.Rejected), "unknown": float64(c.Unknown),
		"lost": float64(c.Lost), "recovered": float64(c.Recovered), "phantom": float64(c.Phantom), "rejectedDelivered": float64(c.RejectedDelivered),
		"redelivered": float64(c.Redelivered), "producerDuplicates": float64(c.ProducerDuplicates), "effectDuplicates": float64(c.EffectDuplicates),
		"reordered": float64(c.Reordered), "stranded": float64(c.Stranded), "deadLettered": float64(c.DeadLettered), "policyDropped": float64(c.PolicyDropped),
		"samples": 0, "saturated": 0, "invalid": 0, "lowestMillis": float64(m.report.MostNegative) / 1e6,
	}
	if m.saturated != "" {
		got["saturated"] = 1
	}
	if len(m.invalid) > 0 {
		got["invalid"] = 1
	}
	if l := cell.LatencyMicros; l != nil {
		got["samples"] = float64(l.EndToEnd.N)
		got["p50Millis"], got["p99Millis"], got["p99.9Millis"] = float64(l.EndToEnd.P50)/1000, float64(l.EndToEnd.P99)/1000, float64(l.EndToEnd.P999)/1000
		got["p97Millis"] = float64(m.report.EndToEnd.ValueAtQuantile(97)) / 1e6
		got["maxMillis"] = float64(l.EndToEnd.Max) / 1000
		got["fromSendMillis"] = float64(l.FromSend.EndToEnd.Max) / 1000
		got["fromSendP99Millis"] = float64(l.FromSend.EndToEnd.P99) / 1000
	}
	return got
}

// judge compares what was reported with what was injected.
func (c *CalibrationCase) judge() {
	var why []string
	for _, name := range slices.Sorted(maps.Keys(c.Injected)) {
		if !c.reported(name) {
			why = append(why, fmt.Sprintf("%s: injected %.6g, reported %.6g", name, c.Injected[name], c.Reported[name]))
		}
	}
	c.OK, c.Why = len(why) == 0, strings.Join(why, "; ")
}

func (c *CalibrationCase) reported(name string) bool {
	want := c.Injected[name]
	got, ok := c.Reported[name]
	if isTime(name) {
		return ok && math.Abs(got-want) <= tolerance*math.Abs(want)
	}
	return ok && got == want
}

func isTime(name string) bool { return strings.HasSuffix(name, "Millis") }

// onlyTimes reports whether every count is as it was injected.
func (c *CalibrationCase) onlyTimes() bool {
	for name := range c.Injected {
		if !isTime(name) && !c.reported(name) {
			return false
		}
	}
	return true
}

// RecordFrozen runs the calibration's queue that stands still for a second, and
// returns the file with its stamps, in Lab.Stamps.
func (l *Lab) RecordFrozen(ctx context.Context) (string, error) {
	c := calibrations()[0]
	s := Spec{Setting: Settings()[0], Test: TestLatency, Fault: FaultNone, Trials: 1, Load: c.load}
	s.Setting.Fake, s.Setting.Label = &c.fake, c.name
	ctx, cancel := context.WithTimeout(ctx, s.deadline())
	defer cancel()
	m, err := l.latency(ctx, s, 1)
	if err != nil {
		return "", err
	}
	name, err := l.keepStamps(s, m)
	return filepath.Join(l.Stamps, filepath.Base(name)), err
}
