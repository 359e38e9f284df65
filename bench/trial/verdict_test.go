package trial

import (
	"strings"
	"testing"
	"time"

	"queuelab/bench/ledger"
	"queuelab/bench/load"
	"queuelab/queue"
)

// history makes the records of messages of one producer: sent and accepted at
// the given times, heard by nobody where heard is false.
func history(producer uint16, sent, accepted int64, n int, heard bool) []ledger.Record {
	receivers := uint32(1)
	if heard {
		receivers = 2
	}
	var rs []ledger.Record
	for i := range n {
		r := ledger.Record{Trial: 1, Producer: producer, Seq: uint64(i)}
		r.Event, r.At = ledger.Intent, sent
		rs = append(rs, r)
		r.Event, r.At, r.Arg = ledger.Accepted, accepted, receivers
		rs = append(rs, r)
	}
	return rs
}

func TestWhatNobodyHearsAfterTheHealIsNoVictimOfTheFault(t *testing.T) {
	settings, err := SelectSettings("redis-pubsub")
	if err != nil {
		t.Fatal(err)
	}
	const probe = 2
	trial := &crashTrial{spec: Spec{Setting: settings[0], Fault: FaultBrokerKill}, probes: []uint16{probe}}
	const struck, healed = 100, 200
	rs := history(producerProcess, 50, 60, 40, false)
	rs = append(rs, ledger.Record{Event: ledger.FaultConfirmed, At: struck}, ledger.Record{Event: ledger.FaultHealed, At: healed})
	// Sent before the heal, answered after it: nobody need have heard it.
	rs = append(rs, history(firstConsumer, 150, 250, 3, false)...)
	rs = append(rs, history(probe, 300, 310, 20, false)...)
	f := trial.gatherFacts(rs)
	if f.Unheard != 43 || f.Published != 43 || trial.probeAccepted != 20 {
		t.Errorf("got %d unheard, %d published, %d accepted after the heal, want 43, 43 and 20", f.Unheard, f.Published, trial.probeAccepted)
	}
	row, err := Lookup("redis-pubsub/default", FaultBrokerKill)
	if err != nil {
		t.Fatal(err)
	}
	if got, note := Verdict(row, f, ledger.Counts{Sent: 63, Accepted: 63, Lost: 63}, 1); got != VerdictContradiction {
		t.Errorf("a subscriber that hears nothing after the heal: got %s (%s), want a contradiction", got, note)
	}
}

func TestALoadThatWasNotHeldExcusesNoLoss(t *testing.T) {
	row, err := Lookup("kafka/acks-all", FaultNone)
	if err != nil {
		t.Fatal(err)
	}
	for lost, want := range map[int64]string{0: VerdictSaturated, 1: VerdictContradiction} {
		o := Outcome{Run: TrialRun{Saturated: "offered 1000/s, sent 900/s", Counts: ledger.Counts{Sent: 100, Accepted: 100, Lost: lost}}}
		var sum tally
		sum.add(o)
		if got, note := sum.verdict(row, o.Run.Counts); got != want {
			t.Errorf("%d lost: got %s (%s), want %s", lost, got, note, want)
		}
	}
}

func TestAnOrderThatIsClaimedAndNotKeptIsAContradiction(t *testing.T) {
	for _, c := range []struct {
		fault   string
		claimed bool
		want    string
	}{
		{FaultNone, true, VerdictContradiction},
		{FaultNone, false, VerdictAsExpected},
		{FaultConsumerKillMidHandle, true, VerdictAsExpected}, // what comes again comes late
	} {
		row, err := Lookup("kafka/acks-all", c.fault)
		if err != nil {
			t.Fatal(err)
		}
		o := Outcome{Caps: queue.Capabilities{OrderedPerKey: c.claimed}}
		if c.fault != FaultNone {
			o.Facts = Facts{InHand: 1, Killed: 1}
			o.Run.Redelivered = 1
		}
		o.Run.Reordered = 1
		var sum tally
		sum.add(o)
		if got, note := sum.verdict(row, o.Run.Counts); got != c.want {
			t.Errorf("claimed %v, under %s: got %s (%s), want %s", c.claimed, c.fault, got, note, c.want)
		}
	}
}

func TestASaleMayLoseOrdersOnlyWhereOracleAndQueueBothSaySo(t *testing.T) {
	for _, c := range []struct {
		setting, fault string
		lossy          bool
		want           string
	}{
		{"memory/bounded", FaultServiceKill, true, VerdictAsExpected},
		{"memory/bounded", FaultServiceKill, false, VerdictContradiction}, // it claims more than its row
		{"memory/bounded", FaultNone, true, VerdictContradiction},
		{"kafka/acks-all", FaultServiceKill, true, VerdictContradiction}, // it claims less than its row
		{"kafka/acks-all", FaultServiceKill, false, VerdictContradiction},
	} {
		row, err := Lookup(c.setting, c.fault)
		if err != nil {
			t.Fatal(err)
		}
		cell := &Cell{Fault: c.fault, Valid: 1, Sale: &Sale{Buyers: 20, Stock: 10, Sold: 9, Undersold: 1, LostOrders: 1}}
		if got, note := judgeSale(row, c.lossy, cell); got != c.want {
			t.Errorf("%s under %s, lossy %v: got %s (%s), want %s", c.setting, c.fault, c.lossy, got, note, c.want)
		}
	}
}

func TestALatencyLeavesNoMessageOutSilently(t *testing.T) {
	m := &measured{sending: time.Second}
	m.report = ledger.Account(ledger.Input{Records: history(1, 0, 10, 9, true)})
	m.report.Sent++
	m.holdsLoad(load.Stats{Model: "open", Due: 10, Sent: 10})
	if !strings.Contains(m.saturated, "1 of 10 messages were not accepted") {
		t.Errorf("got %q, want it to say that one message is in no percentile", m.saturated)
	}
}
