package trial

import (
	"testing"

	"queuelab/bench/ledger"
)

func TestWhatASlowSyncMayTakeNeedNotBeLost(t *testing.T) {
	for _, c := range []struct {
		expression string
		lost       int64
		want       string
	}{
		{"unwritten", 0, VerdictAsExpected},
		{"unwritten", 100, VerdictAsExpected},
		{"unwritten", 101, VerdictContradiction},
		{"recent", 0, VerdictNotReproduced},
	} {
		row := Row{Setting: "redis-list/aof-everysec", Fault: "out-of-memory", Lost: c.expression, Redelivered: "0", Basis: "V", Why: "x"}
		if got, note := Verdict(row, Facts{Recent: 100}, ledger.Counts{Sent: 200, Accepted: 200, Lost: c.lost}, 3); got != c.want {
			t.Errorf("%s with %d of 100 lost: got %s (%s), want %s", c.expression, c.lost, got, note, c.want)
		}
	}
}
