package trial

import (
	"testing"
	"time"

	"queuelab/bench/ledger"
)

// Three messages leave within a second, and the last one comes a second later.
func TestTheRateHeldCountsTheDrain(t *testing.T) {
	start, second := ledger.Now(), time.Second.Nanoseconds()
	var records []ledger.Record
	for seq := range uint64(3) {
		at := start + int64(seq)*second/2
		r := ledger.Record{Trial: 1, Producer: 1, Seq: seq, At: at, Due: at}
		for i, e := range []ledger.Event{ledger.Intent, ledger.Accepted, ledger.Delivered} {
			r.Event, r.At = e, at+int64(i)*1000
			if e == ledger.Delivered && seq == 2 {
				r.At = start + 2*second
			}
			records = append(records, r)
		}
	}
	var m measured
	if err := m.account(func(yield func(ledger.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}, Spec{Test: TestThroughput}, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := m.held(), 1.5; got != want {
		t.Errorf("got %v/s, want %v/s: 3 messages in 2 seconds", got, want)
	}
}
