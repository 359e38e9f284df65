package lie

import (
	"math"
	"testing"
	"time"

	"queuelab/bench/ledger"
)

// frozen is a run at 1,000/s whose sender waits for each answer, over a queue
// that stands still for the second from 10 to 11 and then serves 5,000/s.
func frozen() []ledger.Stamp {
	var stamps []ledger.Stamp
	free := int64(0)
	for n := range 30_000 {
		due := int64(n) * int64(time.Millisecond)
		sent := max(due, free)
		start := sent
		if start >= 10e9 && start < 11e9 {
			start = 11e9
		}
		free = start + int64(200*time.Microsecond)
		stamps = append(stamps, ledger.Stamp{N: n, Due: due, Sent: sent, Accepted: free, Delivered: free, Effect: ledger.NoStamp, Acked: free})
	}
	return stamps
}

func TestEachReporterMakesItsMistakeAndTheTrueOneNone(t *testing.T) {
	told := map[string]Told{}
	for _, x := range Reporters(frozen()) {
		told[x.Name] = x
	}
	near := func(what string, got, want, within float64) {
		t.Helper()
		if !(math.Abs(got-want) <= within) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	near("true p99", told["the truth"].P99, 760, 8)
	near("true max", told["the truth"].Max, 1000, 1)
	near("p99 from the send", told["from the send"].P99, 0.2, 0.01)
	near("max from the send", told["from the send"].Max, 1000, 1)
	near("mean", told["the mean only"].Mean, 21.1, 1)
	near("p50 by buckets", told["coarse buckets"].P50, 26, 2) // of a true 0.2
	if !math.IsNaN(told["the mean only"].P99) {
		t.Error("the mean only tells a p99")
	}
	if got := told["a reservoir"].Samples; got != 1028 {
		t.Errorf("the reservoir kept %d, want 1028", got)
	}
	near("p50 by whole seconds", told["one-second timestamps"].P50, 500, 30)
}

func TestARunThatDeliveredNothingIsToldByNobody(t *testing.T) {
	for _, x := range Reporters([]ledger.Stamp{{Due: 0, Sent: 1, Accepted: 2, Delivered: ledger.NoStamp}}) {
		if x.Samples != 0 || !math.IsNaN(x.P99) {
			t.Errorf("%s: got %+v, want nothing", x.Name, x)
		}
	}
}
