package trial

import (
	"testing"

	"queuelab/bench/ledger"
)

func TestWhatAStuckQueueDoesNotHoldIsLost(t *testing.T) {
	missing := make([]ledger.ID, 10)
	for i := range missing {
		missing[i].Seq = uint64(i + 1)
	}
	for left, want := range map[int64]int{-1: 10, 0: 0, 3: 3, 10: 10, 400: 10} {
		got := remaining(missing, left)
		if len(got) != want {
			t.Errorf("%d missing, %d in the queue: got %d stranded, want %d", len(missing), left, len(got), want)
		}
		if want > 0 && got[len(got)-1] != missing[9].String() {
			t.Errorf("got %q last, want the latest message", got[len(got)-1])
		}
	}
}
