package trial

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"queuelab/bench/ledger"
)

// latencyOutcome is a trial of n messages that all took the same.
func latencyOutcome(took time.Duration, n int) Outcome {
	var rs []ledger.Record
	for i := range n {
		r := ledger.Record{Event: ledger.Intent, Trial: 1, Producer: 1, Seq: uint64(i), At: int64(i + 1), Due: int64(i + 1)}
		rs = append(rs, r)
		for _, e := range []ledger.Event{ledger.Accepted, ledger.Delivered} {
			r.Event, r.At = e, int64(i+1)+int64(took)
			rs = append(rs, r)
		}
	}
	m := &measured{report: ledger.Account(ledger.Input{Records: rs})}
	return outcome(Spec{Test: TestLatency}, TrialRun{StartedAt: time.Now()}, m, nil)
}

func TestACellsPercentilesAreThoseOfAllItsMessagesAndNoAverage(t *testing.T) {
	row, err := Lookup("memory/bounded", FaultNone)
	if err != nil {
		t.Fatal(err)
	}
	// 90 fast messages and 10 slow ones: the p50 of all is fast, and the average
	// of the trials' p50s is not.
	c := Cell{Test: TestLatency}
	s := Spec{Setting: Settings()[0], Test: TestLatency, Fault: FaultNone, Trials: 2}
	fold(s, row, []Outcome{latencyOutcome(time.Millisecond, 90), latencyOutcome(time.Second, 10)}, 1, &c)
	if got := c.LatencyMicros.EndToEnd; got.P50 > 1001 || got.P99 < 990_000 || got.N != 100 {
		t.Errorf("got p50 %d µs, p99 %d µs of %d, want 1000 µs, 1 s and 100", got.P50, got.P99, got.N)
	}
	if got := c.Spread["endToEnd.p50"]; got.N != 2 || got.Low > 1001 || got.High < 990_000 {
		t.Errorf("got spread %+v, want from 1 ms to 1 s over 2", got)
	}
	if c.Noisy == "" {
		t.Error("two trials a thousandfold apart may be ranked")
	}
	if len(c.Runs) != 2 || len(c.Curve) == 0 {
		t.Errorf("got %d runs and %d points, want every trial and a curve", len(c.Runs), len(c.Curve))
	}
}

func TestTrialsOfSettingsAreInterleavedInAnOrderThatTheSeedDraws(t *testing.T) {
	order := func(seed uint64) []string {
		var got []string
		specs, err := Suite("smoke", Settings()[:1], 3, TestThroughput)
		if err != nil {
			t.Fatal(err)
		}
		for _, label := range []string{"A", "B", "C"} {
			s := specs[0]
			s.Setting.Label = label
			specs = append(specs, s)
		}
		specs = specs[1:]
		var cells []Cell
		r := &Runner{Lab: &Lab{}, Suite: "smoke", Seed: seed, Width: 1, Progress: NewProgress(testWriter{t}, false, specs),
			measure:  func(context.Context, Spec, uint64) (*measured, error) { return &measured{rate: 1}, nil },
			Trial:    func(o Outcome) error { got = append(got, o.Setting); return nil },
			Finished: func(c Cell) error { cells = append(cells, c); return nil },
		}
		if err := r.Run(context.Background(), specs); err != nil {
			t.Fatal(err)
		}
		for _, c := range cells {
			if c.Valid != 3 || len(c.Runs) != 3 {
				t.Errorf("%s: got %d valid of %d runs, want 3 of 3: %v", c.Setting, c.Valid, len(c.Runs), c.InvalidReasons)
			}
		}
		return got
	}
	first := order(1)
	for round := range 3 {
		if got := slices.Sorted(slices.Values(first[3*round : 3*round+3])); fmt.Sprint(got) != "[bounded#A bounded#B bounded#C]" {
			t.Errorf("round %d: got %v, want one trial of each", round, got)
		}
	}
	if again := order(1); !slices.Equal(first, again) {
		t.Errorf("got %v and %v from the same seed", first, again)
	}
	orders := map[string]bool{} // of a round: by chance, so over some seeds they differ
	for seed := range uint64(10) {
		got := order(seed + 1)
		for round := range 3 {
			orders[fmt.Sprint(got[3*round:3*round+3])] = true
		}
	}
	if len(orders) < 4 {
		t.Errorf("got %d of 6 orders in 30 rounds: %v", len(orders), orders)
	}
}

func TestAResumedRunMeasuresAgainWhatWasInvalidAndNothingElse(t *testing.T) {
	specs, err := Suite("smoke", Settings()[:1], 3, TestThroughput)
	if err != nil {
		t.Fatal(err)
	}
	var kept []Outcome
	for n, why := range [][]string{nil, {"the broker died"}, nil} {
		o := outcome(specs[0], TrialRun{N: n + 1, Order: 40 + n, StartedAt: time.Now()}, &measured{rate: float64(n + 1), invalid: why}, nil)
		kept = append(kept, o)
	}
	other := kept[0] // of another load: no trial of this cell
	other.Load.PayloadBytes++
	kept = append(kept, other)
	var measuredAgain []int
	var cell Cell
	r := &Runner{Lab: &Lab{}, Suite: "smoke", Seed: 1, Width: 1, Kept: kept, Progress: NewProgress(testWriter{t}, false, specs),
		measure:  func(context.Context, Spec, uint64) (*measured, error) { return &measured{rate: 9}, nil },
		Trial:    func(o Outcome) error { measuredAgain = append(measuredAgain, o.Run.N, o.Run.Order); return nil },
		Finished: func(c Cell) error { cell = c; return nil },
	}
	if err := r.Run(context.Background(), specs); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(measuredAgain, []int{2, 43}) || cell.Valid != 3 || cell.RatePerSecond != 3 {
		t.Errorf("measured again (trial, order) %v, got %d valid at %v/s, want trial 2 as the 43rd, 3 valid and a median of 1, 9, 3", measuredAgain, cell.Valid, cell.RatePerSecond)
	}
}

func TestACellIsFinishedUnderItsOwnNameAndLoadAlone(t *testing.T) {
	specs, err := Suite("smoke", Settings()[:1], 2, TestSLO)
	if err != nil {
		t.Fatal(err)
	}
	s := specs[0]
	l := s.describe()
	whole := Cell{Backend: "memory", Setting: "bounded", Test: TestSLO, Fault: FaultNone, Trials: 2, Load: &l, Verdict: VerdictAsExpected}
	promise := l
	promise.Promise = "p99<1ms"
	for what, change := range map[string]struct {
		f    func(*Cell)
		want bool
	}{
		"as it is":        {func(*Cell) {}, true},
		"slowed":          {func(c *Cell) { c.Setting = "bounded+slow=20%" }, false},
		"fewer trials":    {func(c *Cell) { c.Trials = 1 }, false},
		"another promise": {func(c *Cell) { c.Load = &promise }, false},
		"invalid":         {func(c *Cell) { c.Verdict = VerdictInvalid }, false},
		"skipped":         {func(c *Cell) { c.Verdict = VerdictSkipped }, false},
		"not applicable":  {func(c *Cell) { c.Verdict, c.Trials, c.Load = VerdictNotApplicable, 0, nil }, true},
	} {
		c := whole
		change.f(&c)
		if got := s.Finished(c); got != change.want {
			t.Errorf("%s: got finished %v, want %v", what, got, change.want)
		}
	}
}

func TestAnInterruptedRunGoesOnWithTheTrialsOfItsLog(t *testing.T) {
	dir := t.TempDir()
	log, err := OpenLog(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	specs, err := Suite("smoke", Settings()[:1], 3, TestThroughput)
	if err != nil {
		t.Fatal(err)
	}
	rate := 0.0
	count := func(context.Context, Spec, uint64) (*measured, error) { rate++; return &measured{rate: rate}, nil }
	ctx, cancel := context.WithCancel(context.Background())
	r := &Runner{Lab: &Lab{}, Suite: "smoke", Seed: 1, Width: 1, measure: count, Progress: NewProgress(testWriter{t}, false, specs),
		Trial:    func(o Outcome) error { defer cancel(); return log.Append(o) },
		Finished: func(Cell) error { t.Error("a cell finished with one of three trials"); return nil },
	}
	_ = r.Run(ctx, specs)
	if _, err := log.f.WriteString(`{"backend":"mem`); err != nil { // a kill in the middle of a line
		t.Fatal(err)
	}
	log.Close()
	kept, err := ReadLog(dir)
	if err != nil || len(kept) != 1 {
		t.Fatalf("got %d kept trials, error %v, want 1", len(kept), err)
	}
	if log, err = OpenLog(dir, false); err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	measured := 0
	var cell Cell
	r = &Runner{Lab: &Lab{}, Suite: "smoke", Seed: 1, Width: 1, measure: count, Kept: kept, Progress: NewProgress(testWriter{t}, false, specs),
		Trial:    func(o Outcome) error { measured++; return log.Append(o) },
		Finished: func(c Cell) error { cell = c; return nil },
	}
	if err := r.Run(context.Background(), specs); err != nil {
		t.Fatal(err)
	}
	if measured != 2 || len(cell.Runs) != 3 || cell.Runs[0].RatePerSecond != 1 {
		t.Errorf("measured %d more, got %d runs, want 2 more and the first as it was", measured, len(cell.Runs))
	}
	if all, err := ReadLog(dir); err != nil || len(all) != 3 {
		t.Errorf("got %d trials in the log, error %v, want 3", len(all), err)
	}
}
