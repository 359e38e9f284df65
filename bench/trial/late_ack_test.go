package trial

import (
	"testing"

	"queuelab/bench/ledger"
)

func TestALateAckIsOneThatSucceedsAfterAnotherGotTheMessage(t *testing.T) {
	const victim, other = 50, 51
	for _, c := range []struct {
		name  string
		after []ledger.Record // the fault, which struck with message 1 in the victim's hand
		want  int64
	}{
		{"an ack that failed is none", []ledger.Record{{Event: ledger.Delivered, Process: other, Seq: 1}}, 0},
		{"nobody else got it", []ledger.Record{{Event: ledger.Acked, Process: victim, Seq: 1}}, 0},
		{"the other one acks in time", []ledger.Record{{Event: ledger.Delivered, Process: other, Seq: 1}, {Event: ledger.Acked, Process: other, Seq: 1}}, 0},
		{"the other one got it later", []ledger.Record{{Event: ledger.Acked, Process: victim, Seq: 1}, {Event: ledger.Delivered, Process: other, Seq: 1}}, 0},
		{"it is of another message", []ledger.Record{{Event: ledger.Delivered, Process: other, Seq: 1}, {Event: ledger.Acked, Process: victim, Seq: 2}}, 0},
		{"it succeeds too late", []ledger.Record{{Event: ledger.Delivered, Process: other, Seq: 1}, {Event: ledger.Acked, Process: victim, Seq: 1}}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			records := append([]ledger.Record{
				{Event: ledger.Delivered, Process: victim, Seq: 1},
				{Event: ledger.FaultConfirmed, Process: controlProcess},
			}, c.after...)
			for i := range records {
				records[i].At = int64(i + 1)
			}
			if got := lateAcks(records, []uint16{victim}); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
