package compare

import (
	"math"
	"math/rand/v2"
	"time"

	"queuelab/bench/ledger"
	"queuelab/bench/trial"
)

var monday = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// resultOf is a result of the given cells, as a run writes it.
func resultOf(id string, started time.Time, cells ...trial.Cell) trial.Result {
	return trial.Result{Schema: trial.Schema, Cells: cells, Run: trial.Run{
		ID: id, StartedAt: started, FinishedAt: started.Add(10 * time.Minute), Complete: true, Commit: "0215ccc", GoVersion: "go1.26.8", Suite: "full",
		Host: trial.Host{CPU: "Example CPU 2.6 GHz", Cores: 2, Kernel: "Linux 6.18.44", MemoryBytes: 24 << 30, FsyncMicros: trial.Fsync{P50: 410, P99: 2150}, Load1: 0.3, ClockSource: "tsc"},
	}}
}

func cellOf(setting, test string, runs ...trial.TrialRun) trial.Cell {
	c := trial.Cell{
		Backend: "redis-streams", Setting: setting, Broker: trial.Broker{Name: "redis", Version: "7.0.15"}, Guarantee: "at least once", Confirm: "disk",
		Profile: trial.ProfileDiskSync, Test: test, Fault: trial.FaultNone, Seed: 7, Trials: len(runs), Valid: len(runs), Consumers: 1, Concurrency: 1,
		PayloadBytes: 100, LoopModel: "open", RatePerSecond: 1000, Verdict: trial.VerdictAsExpected, Runs: runs,
		Load:              &trial.Load{Shape: "constant:1000", Keys: "uniform:16", Producers: 1, Batch: 1},
		EffectiveSettings: map[string]string{"appendonly": "yes", "appendfsync": setting, "url": "redis+streams://127.0.0.1:13435/0?queue=lab8&claim=2s"},
	}
	if test == trial.TestThroughput {
		c.LoopModel, c.Load.Shape = "closed", "closed"
	}
	for i := range c.Runs {
		c.Runs[i].N = i + 1
	}
	return c
}

// draw is n values about a median with a coefficient of variation.
func draw(rng *rand.Rand, n int, median, cv float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = median * math.Exp(cv*rng.NormFloat64())
	}
	return xs
}

// latencies are trials with these p50, in microseconds; the rest is in proportion.
func latencies(p50 []float64) []trial.TrialRun {
	runs := make([]trial.TrialRun, len(p50))
	for i, x := range p50 {
		at := func(f float64) int64 { return int64(math.Round(f * x)) }
		runs[i] = trial.TrialRun{
			RatePerSecond: 1000, Counts: ledger.Counts{Sent: 10_000, Accepted: 10_000},
			LatencyMicros: &trial.Latency{
				Publish:  trial.Percentiles{P50: at(0.5), P90: at(0.7), P99: at(1), P999: at(3), Max: at(9), N: 10_000},
				EndToEnd: trial.Percentiles{P50: at(1), P90: at(2), P99: at(4), P999: at(9), Max: at(20), N: 10_000},
			},
		}
	}
	return runs
}

func rates(perSecond []float64) []trial.TrialRun {
	runs := make([]trial.TrialRun, len(perSecond))
	for i, x := range perSecond {
		runs[i] = trial.TrialRun{RatePerSecond: x, Counts: ledger.Counts{Sent: 100_000, Accepted: 100_000}}
	}
	return runs
}

// crashes are trials of which the first lossy lost something.
func crashes(lossy, of int) []trial.TrialRun {
	runs := make([]trial.TrialRun, of)
	for i := range runs {
		ms := int64(300 + 7*i)
		runs[i] = trial.TrialRun{RecoveryMillis: &ms, Counts: ledger.Counts{Sent: 1000, Accepted: 1000}}
		if i < lossy {
			runs[i].Lost = 40
		}
	}
	return runs
}

func rowOf(c Comparison, metric string) Row {
	for _, cell := range c.Cells {
		for _, r := range cell.Rows {
			if r.Metric == metric {
				return r
			}
		}
	}
	return Row{Verdict: "no such row"}
}
