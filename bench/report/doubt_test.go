package report

import (
	"strings"
	"testing"

	"queuelab/bench/trial"
)

func TestNoCostStandsWithoutTheVerdictThatSpoilsIt(t *testing.T) {
	for verdict, want := range map[string]bool{
		trial.VerdictAsExpected: false, trial.VerdictSaturated: true, trial.VerdictContradiction: true, trial.VerdictOracleUpdate: true,
	} {
		latency := trial.Percentiles{P50: 100, P90: 200, P99: 300, P999: 400, Max: 500, N: 10_000}
		v := newView(trial.Result{Cells: []trial.Cell{
			{Backend: "kafka", Setting: "acks-all", Test: trial.TestLatency, Fault: trial.FaultNone, Trials: 1, Valid: 1, Verdict: verdict, LatencyMicros: &trial.Latency{Publish: latency, EndToEnd: latency}},
			{Backend: "kafka", Setting: "acks-all", Test: trial.TestThroughput, Fault: trial.FaultNone, Trials: 1, Valid: 1, Verdict: verdict, RatePerSecond: 1000},
		}})
		symbol := markOf(verdict).Symbol
		for _, f := range []field{latencyBrief(v.rows[0])[1], heldBrief(v.rows[0])} {
			if got := strings.Contains(f.Text.String(), symbol); got != want {
				t.Errorf("%s: got %q, marked %v, want %v", verdict, f.Text, got, want)
			}
		}
	}
}
