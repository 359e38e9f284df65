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

func TestAPowerCutThatLostLessThanTheKillOfTheSameInstantProvesNothing(t *testing.T) {
	for _, c := range []struct {
		name            string
		lost, killLost  int64
		provesSomething bool
	}{
		{"both kept everything", 0, 0, true},
		{"the power took more", 9, 3, true},
		{"the power took the same", 3, 3, true},
		{"the kill would have taken more", 0, 52, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if why := backwards(c.lost, c.killLost); (why == "") != c.provesSomething {
				t.Errorf("got %q, want it to prove something: %v", why, c.provesSomething)
			}
		})
	}
}

func TestTheAgeOfALossCountsFromTheInstantOfTheCut(t *testing.T) {
	const ms = 1_000_000
	records := []ledger.Record{
		{Event: ledger.Intent, Trial: 1, Producer: 1, Seq: 1, At: 90 * ms},
		{Event: ledger.Accepted, Trial: 1, Producer: 1, Seq: 1, At: 100 * ms},
		{Event: ledger.FaultConfirmed, Process: controlProcess, Trial: 1, At: 500 * ms}, // all of it is dead
	}
	cut := &crashTrial{}
	for _, c := range []struct {
		at, want int64
	}{{0, 400}, {350 * ms, 250}, {95 * ms, 0}} { // the last was accepted between the cut and the death
		cut.StruckAt(c.at)
		r := ledger.Account(cut.input(records, map[string]int{}))
		if r.Lost != 1 || r.LossWindow.Milliseconds() != c.want {
			t.Errorf("struck at %d: got %d lost, %v old, want 1, %d ms old", c.at, r.Lost, r.LossWindow, c.want)
		}
	}
}
