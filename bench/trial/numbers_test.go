package trial

import (
	"testing"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/host/meter"
	"queuelab/bench/ledger"
	"queuelab/bench/stat"
)

func TestACostIsPerMillionDelivered(t *testing.T) {
	b := &bill{
		at: &meter.Usage{CPU: time.Second}, known: true,
		before: broker.Usage{CPU: 10 * time.Second, DiskBytes: 1000, MemoryBytes: 5}, after: broker.Usage{CPU: 13 * time.Second, DiskBytes: 6000, MemoryBytes: 7},
	}
	b.client, b.clientMemory = 2*time.Second, 99
	got := *b.cost(500_000)
	if want := (Cost{ClientCPUSeconds: 4, BrokerCPUSeconds: 6, ClientMemoryBytes: 99, BrokerMemoryBytes: 7, BrokerDiskBytes: 10_000, BrokerKnown: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	some := tally{each: []Outcome{{Run: TrialRun{Cost: &Cost{ClientCPUSeconds: 1}}}, {Run: TrialRun{Cost: &Cost{ClientCPUSeconds: 3, BrokerCPUSeconds: 8, BrokerKnown: true}}}}}
	if got, want := *some.cost(), (Cost{ClientCPUSeconds: 2, BrokerCPUSeconds: 8, BrokerKnown: true}); got != want {
		t.Errorf("of one trial whose broker is known: got %+v, want %+v", got, want)
	}
	if b.cost(0) != nil {
		t.Error("a cost per million of nothing")
	}
	used := &bill{at: &meter.Usage{CPU: time.Second}}
	used.stop(t.Context(), &meter.Usage{CPU: 4 * time.Second, PeakMemoryBytes: 7})
	if used.client != 3*time.Second || used.clientMemory != 7 {
		t.Errorf("got %v and %d bytes, want what was used since the start", used.client, used.clientMemory)
	}
}

// staged is a trial in which every stage takes a time of its own.
func staged(n int) Outcome {
	var rs []ledger.Record
	for i := range n {
		at := int64(i+1) * int64(time.Millisecond)
		r := ledger.Record{Trial: 1, Producer: 1, Seq: uint64(i), Due: at}
		for _, x := range []struct {
			e     ledger.Event
			after time.Duration
		}{
			{ledger.Intent, 100 * time.Microsecond}, {ledger.Accepted, 300 * time.Microsecond},
			{ledger.Delivered, 700 * time.Microsecond}, {ledger.Effect, 1500 * time.Microsecond}, {ledger.Acked, 3100 * time.Microsecond},
		} {
			r.Event, r.At = x.e, at+int64(x.after)
			rs = append(rs, r)
		}
	}
	m := &measured{report: ledger.Account(ledger.Input{Records: rs})}
	return outcome(Spec{Test: TestLatency}, TrialRun{StartedAt: time.Now()}, m, nil)
}

func TestEveryStageOfACellIsItsOwn(t *testing.T) {
	row, err := Lookup("memory/bounded", FaultNone)
	if err != nil {
		t.Fatal(err)
	}
	c := Cell{Test: TestLatency}
	fold(Spec{Setting: Settings()[0], Test: TestLatency, Fault: FaultNone, Trials: 1}, row, []Outcome{staged(1000)}, 1, &c)
	l := c.LatencyMicros
	for stage, x := range map[string]struct{ got, want int64 }{
		"publish": {l.Publish.P50, 300}, "end to end": {l.EndToEnd.P50, 700}, "lateness": {l.Lateness.P50, 100},
		"effect": {l.Effect.P50, 1500}, "acked": {l.Acked.P50, 3100},
		"the trial's from the send": {c.Runs[0].LatencyMicros.FromSend.EndToEnd.P50, 600},
		"publish from the send":     {l.FromSend.Publish.P50, 200}, "end to end from the send": {l.FromSend.EndToEnd.P50, 600},
		"the curve's publish": {c.Curve[0].Publish, 300}, "the curve's end to end": {c.Curve[0].EndToEnd, 700}, "the curve's from the send": {c.Curve[0].EndToEndFromSend, 600},
		"the spread's publish": {int64(c.Spread["publish.p50"].Median), 300}, "the spread's end to end": {int64(c.Spread["endToEnd.p99"].Median), 700},
	} {
		if x.got < x.want || x.got > x.want+x.want/500+1 { // three digits
			t.Errorf("%s: got %d µs, want %d", stage, x.got, x.want)
		}
	}
	if far := c.Curve[len(c.Curve)-1].Q; far != 0.99 {
		t.Errorf("the curve of 1000 messages ends at %v, want 0.99: ten lie beyond", far)
	}
}

func TestALossIsCountedByTheCrash(t *testing.T) {
	row, err := Lookup("redis-list/no-persistence", FaultConsumerKillMidHandle)
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []Outcome
	for _, lost := range []int64{0, 500, 0, 0} {
		outcomes = append(outcomes, Outcome{Run: TrialRun{Counts: ledger.Counts{Sent: 1000, Accepted: 1000, Lost: lost}}})
	}
	outcomes = append(outcomes, Outcome{Run: TrialRun{Invalid: []string{"idle"}, Counts: ledger.Counts{Lost: 7}}})
	c := Cell{Test: TestCrash}
	fold(Spec{Setting: Settings()[1], Test: TestCrash, Fault: FaultConsumerKillMidHandle, Trials: 5}, row, outcomes, 1, &c)
	low, high := stat.ClopperPearson(1, 4)
	if got, want := *c.Loss, (Loss{Trials: 4, Lossy: 1, Low: low, High: high}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestARateOfAScalingCellBelongsToItsValue(t *testing.T) {
	var sum tally
	for _, f := range []float64{1, 2, 3} {
		sum.add(Outcome{Rates: []scaleAt{{Value: 64, Rate: 30 * f}, {Value: 1, Rate: 10 * f}, {Value: 512, Reason: "it broke"}}})
	}
	for _, p := range sum.scaling(TestScalingBatch, 1) {
		want := map[int]float64{1: 20, 64: 60}[p.Value]
		if p.Rate.Median != want || (p.Reason != "") != (p.Value == 512) {
			t.Errorf("%d: got %v (%q), want %v", p.Value, p.Rate.Median, p.Reason, want)
		}
	}
}
