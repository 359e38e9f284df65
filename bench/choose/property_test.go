package choose

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"queuelab/bench/trial"
)

// drawNeeds draws needs of which each may be absent.
func drawNeeds(t *rapid.T) Needs {
	var all []string
	for _, f := range Features() {
		all = append(all, f.Name)
	}
	return Needs{
		Must:    rapid.SliceOfNDistinct(rapid.SampledFrom(all), 0, 4, rapid.ID[string]).Draw(t, "must"),
		Loses:   rapid.SampledFrom([]string{"", MayLose, NothingOnCrash, NothingOnPowerLoss}).Draw(t, "loses"),
		Groups:  rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "groups"),
		Rate:    rapid.SampledFrom([]float64{0, 0, 500, 5000, 100_000}).Draw(t, "rate"),
		P99:     rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, 20 * time.Millisecond}).Draw(t, "p99"),
		Backlog: rapid.SampledFrom([]int64{0, 0, 100, 1_000_000, 1_000_000_000}).Draw(t, "backlog"),
		Only:    rapid.SliceOfNDistinct(rapid.SampledFrom(Brokers()), 0, 2, rapid.ID[string]).Draw(t, "only"),
	}
}

// drawMore adds one need, or asks more of a loss.
func drawMore(t *rapid.T, n Needs) Needs {
	more := n
	more.Must = slices.Clone(n.Must)
	switch rapid.IntRange(0, 6).Draw(t, "what is added") {
	case 0, 1:
		more.Must = append(more.Must, rapid.SampledFrom(featureNames()).Draw(t, "a need"))
	case 2:
		more.Loses = map[string]string{"": MayLose, MayLose: NothingOnCrash, NothingOnCrash: NothingOnPowerLoss, NothingOnPowerLoss: NothingOnPowerLoss}[n.Loses]
	case 3:
		more.Groups = max(n.Groups, 2)
	case 4:
		more.Rate = max(n.Rate, rapid.Float64Range(1, 200_000).Draw(t, "a rate"))
	case 5:
		if n.P99 == 0 {
			more.P99 = time.Duration(rapid.Int64Range(1, int64(100*time.Millisecond)).Draw(t, "a p99"))
		}
	case 6:
		if len(n.Only) == 0 {
			more.Only = []string{rapid.SampledFrom(Brokers()).Draw(t, "a broker")}
		}
	}
	return more
}

// drawEvidence draws a result with whatever numbers, and has some claims missing.
func drawEvidence(t *rapid.T, e *Evidence) *Evidence {
	verdicts := []string{trial.VerdictAsExpected, trial.VerdictAsExpected, trial.VerdictContradiction, trial.VerdictNotReproduced, trial.VerdictSaturated, trial.VerdictInvalid}
	faults := []string{trial.FaultNone, powerLoss, slowFsync, leaderKill, trial.FaultBrokerKill, trial.FaultConsumerKillMidHandle, trial.FaultConsumerKillBeforeAck}
	var cells []trial.Cell
	for range rapid.IntRange(0, 60).Draw(t, "cells") {
		s := rapid.SampledFrom(e.Settings).Draw(t, "setting")
		c := trial.Cell{
			Backend: s.Backend, Setting: s.Name,
			Test:          rapid.SampledFrom([]string{trial.TestLatency, trial.TestThroughput, trial.TestCrash, trial.TestFault, trial.TestSLO}).Draw(t, "test"),
			Fault:         rapid.SampledFrom(faults).Draw(t, "fault"),
			Valid:         rapid.SampledFrom([]int{0, 1, 3, 10}).Draw(t, "valid"),
			Verdict:       rapid.SampledFrom(verdicts).Draw(t, "verdict"),
			RatePerSecond: rapid.Float64Range(0, 300_000).Draw(t, "rate"),
			Broker:        trial.Broker{Emulated: rapid.IntRange(0, 9).Draw(t, "emulated") == 0},
		}
		c.Lost = rapid.SampledFrom([]int64{0, 0, 7}).Draw(t, "lost")
		c.Redelivered = rapid.SampledFrom([]int64{0, 0, 2}).Draw(t, "redelivered")
		c.BacklogAtFault = rapid.SampledFrom([]int64{0, 4000}).Draw(t, "backlog")
		p99 := trial.Percentiles{P99: rapid.Int64Range(1, 100_000).Draw(t, "p99"), N: rapid.SampledFrom([]int64{10, 10_000}).Draw(t, "n")}
		switch c.Test {
		case trial.TestLatency:
			c.LatencyMicros = &trial.Latency{EndToEnd: p99}
			low := rapid.Float64Range(1, 50_000).Draw(t, "low")
			c.Spread = map[string]trial.Interval{"endToEnd.p99": {Median: low * 1.5, Low: low, High: low * 2, N: c.Valid}}
		case trial.TestSLO:
			c.SLO = &trial.SLO{HighestRate: c.RatePerSecond, Curve: []trial.RatePoint{{Offered: c.RatePerSecond, Achieved: c.RatePerSecond, LatencyMicros: &trial.Latency{EndToEnd: p99}}}}
		}
		cells = append(cells, c)
	}
	out := *e
	out.Results = append([]Source{{File: "drawn", Result: trial.Result{Schema: 1, Cells: cells}}}, e.Results[rapid.IntRange(0, len(e.Results)).Draw(t, "stored results left out"):]...)
	return &out
}

func TestAddingANeedNeverAddsACandidate(t *testing.T) {
	real := stored(t)
	rapid.Check(t, func(t *rapid.T) {
		e, n := drawEvidence(t, real), drawNeeds(t)
		more := drawMore(t, n)
		if n.Check() != nil || more.Check() != nil { // what cannot be meant is told elsewhere
			t.Skip()
		}
		fits := names(e.ranked(n, false).Fitting())
		for _, s := range names(e.ranked(more, false).Fitting()) {
			if !slices.Contains(fits, s) {
				t.Fatalf("%+v: %s fits, and does not fit %+v", more, s, n)
			}
		}
	})
}

func TestNothingThatLacksANeedOrIsNotKnownToHaveItFits(t *testing.T) {
	real := stored(t)
	rapid.Check(t, func(t *rapid.T) {
		e, n := drawEvidence(t, real), drawNeeds(t)
		if n.Check() != nil {
			t.Skip()
		}
		a := e.ranked(n, rapid.Bool().Draw(t, "with speed"))
		for i, c := range a.Settings {
			want := len(c.Reasons) == len(n.items())
			for _, r := range c.Reasons {
				want = want && r.Verdict == Yes
				if r.Verdict != Unknown && len(r.Proof) == 0 {
					t.Fatalf("%s: %s is %s without a proof", c.Setting, r.Need, r.Verdict)
				}
			}
			if c.Fits != want {
				t.Fatalf("%s: got fits=%v of %+v", c.Setting, c.Fits, c.Reasons)
			}
			if fit := len(a.Fitting()); (i < fit) != c.Fits || c.Fits && (c.First < 1 || c.Last > fit || c.First > c.Last) {
				t.Fatalf("%s is in place %d, %d–%d, and fits=%v", c.Setting, i, c.First, c.Last, c.Fits)
			}
			if c.Fits && n.Loses == NothingOnPowerLoss && forgets(c.Setting) {
				t.Fatalf("%s is named for nothing lost in a power cut", c.Setting)
			}
		}
		// A conflict is real, and as small as can be.
		for _, drop := range a.Conflict {
			left := slices.DeleteFunc(slices.Clone(a.Conflict), func(s string) bool { return s == drop })
			if !slices.ContainsFunc(a.Settings, func(c Candidate) bool {
				return !slices.ContainsFunc(left, func(need string) bool { return slices.Contains(c.Lacks(No), need) })
			}) {
				t.Fatalf("got the conflict %v, and without %s it still is one", a.Conflict, drop)
			}
		}
	})
}
