package trial

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/ledger"
)

// Every cell resolves to one row, and every row is there for some cell.
func TestEveryCellResolvesToExactlyOneRow(t *testing.T) {
	rows, err := parseOracle(oracleCSV)
	if err != nil {
		t.Fatal(err)
	}
	unused := map[oracleKey]bool{}
	for k := range rows {
		unused[k] = true
	}
	for _, s := range Settings() {
		for _, f := range Faults() {
			row, err := Lookup(s.String(), f)
			if err != nil {
				t.Error(err)
				continue
			}
			delete(unused, oracleKey{row.Setting, row.Fault})
			// A queue without a broker, and a cluster without a majority.
			if none := s.Backend == "memory" || s.Backend == "redis-sentinel"; row.NotApplicable() && !none {
				t.Errorf("%s under %s: got not applicable, and it has a broker of that kind", s, f)
			}
		}
	}
	for k := range unused {
		t.Errorf("no setting has use for the row %s under %s", k.setting, k.fault)
	}
}

func TestTheMostSpecificRowWins(t *testing.T) {
	for _, c := range []struct{ setting, fault, row, lost string }{
		{"redis-list/no-persistence", FaultBrokerKill, "redis-list/no-persistence", "backlog"},
		{"redis-list/no-persistence", FaultConsumerKillMidHandle, "redis-list/*", "in-hand"},
		{"redis-list/no-persistence", FaultNone, "*/*", "0"},
		{"redis-list/no-persistence", FaultServiceKill, "*/*", "any"},
		{"kafka/acks-0", FaultServiceKill, "*/*", "any"},
		{"kafka/acks-all", FaultServiceKill, "kafka/acks-all", "0"},
		{"kafka/acks-0", FaultBrokerKill, "kafka/acks-0", "any"},
		{"kafka/own", FaultConsumerKillBeforeAck, "kafka/*", "0"},
	} {
		row, err := Lookup(c.setting, c.fault)
		if err != nil || row.Setting != c.row || row.Lost != c.lost {
			t.Errorf("%s under %s: got %+v, %v, want the row %s with %s lost", c.setting, c.fault, row, err, c.row, c.lost)
		}
	}
	for _, c := range []struct{ setting, fault string }{{"kafka", FaultNone}, {"/x", FaultNone}, {"kafka/acks-0", "flood"}, {"new/one", FaultBrokerKill}} {
		if row, err := Lookup(c.setting, c.fault); err == nil {
			t.Errorf("%s under %s: got %+v, want an error", c.setting, c.fault, row)
		}
	}
}

func TestTheBackendsRowWinsOverEverybodys(t *testing.T) {
	rows, err := parseOracle("setting,fault,lost,redelivered,basis,why\n*/*,none,0,0,V,x\na/*,none,pops,0,V,x\na/b,none,any,0,V,x\n")
	if err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]string{"a/b": "any", "a/c": "pops", "c/b": "0"} {
		if row, err := lookup(rows, setting, FaultNone); err != nil || row.Lost != want {
			t.Errorf("%s: got %+v, %v, want %s lost", setting, row, err, want)
		}
	}
}

func TestATableWithAFlawIsRefused(t *testing.T) {
	const header = "setting,fault,lost,redelivered,basis,why\n"
	for _, c := range []struct{ name, text, want string }{
		{"no header", "a/b,none,0,0,V,x\n", "no header"},
		{"empty", "", "no header"},
		{"a missing column", header + "a/b,none,0,0,V\n", "wrong number of fields"},
		{"an unknown word of loss", header + "a/b,none,some,0,V,x\n", `unknown term "some"`},
		{"an unknown word of redelivery", header + "a/b,none,0,backlog,V,x\n", `unknown term "backlog"`},
		{"an unknown fault", header + "a/b,flood,0,0,V,x\n", "unknown fault"},
		{"an unknown basis", header + "a/b,none,0,0,U,x\n", "basis"},
		{"no reason", header + "a/b,none,0,0,V,\n", "no reason"},
		{"half not applicable", header + "a/b,none,n/a,0,V,x\n", "n/a"},
		{"a setting without a backend", header + "b,none,0,0,V,x\n", "backend/setting"},
		{"a wildcard in the wrong place", header + "*/b,none,0,0,V,x\n", "backend/setting"},
		{"two rows for one cell", header + "a/b,none,0,0,V,x\na/b,none,0,0,V,y\n", "two rows"},
	} {
		if _, err := parseOracle(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error about %q", c.name, err, c.want)
		}
	}
}

var someFacts = Facts{Backlog: 400, InHand: 6, InHandDone: 2, Buffer: 30, Pops: 3, Published: 50, Unheard: 40, Unacked: 11, SinceCommit: 20, Killed: 4}

func TestBoundsComeFromTheFacts(t *testing.T) {
	for _, c := range []struct {
		lost        string
		least, most int64
	}{
		{"0", 0, 0}, {"backlog", 400, 400}, {"in-hand", 4, 7}, {"backlog + in-hand", 404, 407}, {"buffer", 0, 30},
		{"in-hand + buffer", 4, 37}, {"buffer + until resubscribed", 40, 80}, {"in-hand + buffer + until resubscribed", 44, 87}, {"pops", 0, 3},
	} {
		b := Row{Lost: c.lost, Redelivered: "0"}.Bounds(someFacts)
		if *b.LostAtLeast != c.least || *b.LostAtMost != c.most {
			t.Errorf("lost %s: got %d to %d, want %d to %d", c.lost, *b.LostAtLeast, *b.LostAtMost, c.least, c.most)
		}
		if e := (Row{Lost: c.lost, Redelivered: "0", Basis: "V", Why: "x"}).Expect(someFacts); *e.LostAtMost != c.most || e.Lost != c.lost || e.Basis != "V" || e.Why != "x" {
			t.Errorf("lost %s: expected %+v", c.lost, e)
		}
	}
	for _, c := range []struct {
		redelivered string
		least, most int64
	}{
		{"0", 0, 0}, {"in-hand", 4, 6}, {"in-hand + buffer", 4, 36}, {"unacked", 0, 11}, {"since commit", 4, 20},
	} {
		b := Row{Lost: "0", Redelivered: c.redelivered}.Bounds(someFacts)
		if *b.RedeliveredAtLeast != c.least || *b.RedeliveredAtMost != c.most {
			t.Errorf("redelivered %s: got %d to %d, want %d to %d", c.redelivered, *b.RedeliveredAtLeast, *b.RedeliveredAtMost, c.least, c.most)
		}
	}
	for _, free := range []string{"any", "n/a"} {
		if diff := cmp.Diff(Bounds{}, Row{Lost: free, Redelivered: free}.Bounds(someFacts)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", free, diff)
		}
	}
}

func TestFactsAddUp(t *testing.T) {
	sum := someFacts
	sum.Add(someFacts)
	want := Facts{Backlog: 800, InHand: 12, InHandDone: 4, Buffer: 60, Pops: 6, Published: 100, Unheard: 80, Unacked: 22, SinceCommit: 40, Killed: 8}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The counts at a bound are as expected, and one more or one less is not.
func TestACountOffByOneFlipsTheVerdict(t *testing.T) {
	const ok, bad, update, gone = VerdictAsExpected, VerdictContradiction, VerdictOracleUpdate, VerdictNotReproduced
	for _, c := range []struct {
		name, setting, fault string
		facts                Facts
		lost, redelivered    int64
		want                 string
	}{
		{"control", "kafka/acks-1", FaultNone, Facts{}, 0, 0, ok},
		{"control loses one", "kafka/acks-1", FaultNone, Facts{}, 1, 0, bad},
		{"control repeats one", "memory/bounded", FaultNone, Facts{}, 0, 1, bad},

		{"the backlog goes", "redis-list/no-persistence", FaultBrokerKill, Facts{Backlog: 400}, 400, 0, ok},
		{"all but one of the backlog go", "redis-list/no-persistence", FaultBrokerKill, Facts{Backlog: 400}, 399, 0, bad},
		{"more than the backlog goes", "redis-list/no-persistence", FaultBrokerKill, Facts{Backlog: 400}, 401, 0, bad},
		{"the backlog stays", "redis-list/no-persistence", FaultBrokerKill, Facts{Backlog: 400}, 0, 0, gone},
		{"there was no backlog", "redis-list/no-persistence", FaultBrokerKill, Facts{}, 0, 0, gone},

		{"the file kept it all", "redis-list/aof-always", FaultBrokerKill, Facts{Backlog: 400}, 0, 0, ok},
		{"the file lost one", "redis-list/aof-always", FaultBrokerKill, Facts{Backlog: 400}, 1, 0, bad},
		{"as many pops as consumers", "redis-list/aof-everysec", FaultBrokerKill, Facts{Pops: 2}, 2, 0, ok},
		{"one pop more", "redis-list/aof-everysec", FaultBrokerKill, Facts{Pops: 2}, 3, 0, bad},

		{"what was in hand goes", "redis-list/aof-always", FaultConsumerKillMidHandle, Facts{InHand: 3, Killed: 3}, 3, 0, ok},
		{"one in hand stays", "redis-list/aof-always", FaultConsumerKillMidHandle, Facts{InHand: 3, Killed: 3}, 2, 0, bad},
		{"one more than in hand goes", "redis-list/aof-always", FaultConsumerKillMidHandle, Facts{InHand: 3, Killed: 3}, 4, 0, bad},
		{"a list gives one again", "redis-list/aof-always", FaultConsumerKillMidHandle, Facts{InHand: 3, Killed: 3}, 3, 1, bad},

		{"pending entries come again", "redis-streams/aof-always", FaultConsumerKillMidHandle, Facts{InHand: 3, Killed: 3}, 0, 3, ok},
		{"one too few comes again", "redis-streams/aof-always", FaultConsumerKillMidHandle, Facts{InHand: 3, Killed: 3}, 0, 2, bad},
		{"one too many comes again", "redis-streams/aof-always", FaultConsumerKillMidHandle, Facts{InHand: 3, Killed: 3}, 0, 4, bad},
		{"nothing comes again", "redis-streams/aof-always", FaultConsumerKillMidHandle, Facts{InHand: 3, Killed: 3}, 0, 0, gone},
		{"the victim was idle", "redis-streams/aof-always", FaultConsumerKillMidHandle, Facts{Killed: 3}, 0, 0, gone},
		{"a stream loses one", "redis-streams/aof-always", FaultConsumerKillBeforeAck, Facts{InHand: 1, InHandDone: 1, Killed: 1}, 1, 1, bad},

		{"a broker repeats what was unacked", "rabbitmq/quorum", FaultBrokerKill, Facts{Unacked: 5}, 0, 5, ok},
		{"and one more", "rabbitmq/quorum", FaultBrokerKill, Facts{Unacked: 5}, 0, 6, bad},
		{"and the buffer", "rabbitmq/classic", FaultConsumerKillMidHandle, Facts{InHand: 1, Buffer: 9, Killed: 1}, 0, 10, ok},
		{"and one more than the buffer", "rabbitmq/classic", FaultConsumerKillMidHandle, Facts{InHand: 1, Buffer: 9, Killed: 1}, 0, 11, bad},
		{"auto-ack loses the hand and the buffer", "rabbitmq/transient", FaultConsumerKillMidHandle, Facts{InHand: 1, Buffer: 9, Killed: 1}, 10, 0, ok},
		{"auto-ack spares the hand", "rabbitmq/transient", FaultConsumerKillBeforeAck, Facts{InHand: 1, InHandDone: 1, Buffer: 9, Killed: 1}, 9, 0, ok},
		{"auto-ack loses one more", "rabbitmq/transient", FaultConsumerKillBeforeAck, Facts{InHand: 1, InHandDone: 1, Buffer: 9, Killed: 1}, 10, 0, bad},
		{"auto-ack loses nothing", "rabbitmq/transient", FaultConsumerKillBeforeAck, Facts{InHand: 1, InHandDone: 1, Buffer: 9, Killed: 1}, 0, 0, gone},

		{"since the commit", "kafka/acks-all", FaultConsumerKillBeforeAck, Facts{InHand: 1, SinceCommit: 4, Killed: 1}, 0, 4, ok},
		{"before the commit", "kafka/acks-all", FaultConsumerKillBeforeAck, Facts{InHand: 1, SinceCommit: 4, Killed: 1}, 0, 5, bad},
		{"nothing was promised", "kafka/acks-0", FaultBrokerKill, Facts{}, 1234, 0, ok},

		{"nobody listened: all published is gone", "redis-pubsub/default", FaultBrokerKill, Facts{Published: 400, Unheard: 400}, 400, 0, ok},
		{"nobody listened, and one is there", "redis-pubsub/default", FaultBrokerKill, Facts{Published: 400, Unheard: 400}, 399, 0, bad},
		{"more than was published is gone", "redis-pubsub/default", FaultBrokerKill, Facts{Published: 400, Unheard: 400}, 401, 0, bad},
		{"a dead subscriber", "redis-pubsub/default", FaultConsumerKillMidHandle, Facts{InHand: 1, Buffer: 10, Published: 50, Unheard: 20, Killed: 1}, 61, 0, ok},
		{"a dead subscriber that spared what nobody heard", "redis-pubsub/default", FaultConsumerKillMidHandle, Facts{InHand: 1, Buffer: 10, Published: 50, Unheard: 20, Killed: 1}, 20, 0, bad},

		{"the process takes all with it", "memory/bounded", FaultConsumerKillMidHandle, Facts{Backlog: 40, InHand: 1, Killed: 1}, 41, 0, ok},
		{"a deduced row that is off is updated first", "memory/bounded", FaultConsumerKillMidHandle, Facts{Backlog: 40, InHand: 1, Killed: 1}, 40, 0, update},
		{"a process that had done what it held", "memory/bounded", FaultConsumerKillBeforeAck, Facts{Backlog: 40, InHand: 1, InHandDone: 1, Killed: 1}, 40, 0, ok},
		{"no broker", "memory/bounded", FaultBrokerKill, Facts{}, 0, 0, VerdictNotApplicable},
	} {
		t.Run(c.name, func(t *testing.T) {
			row, err := Lookup(c.setting, c.fault)
			if err != nil {
				t.Fatal(err)
			}
			got, note := Verdict(row, c.facts, ledger.Counts{Sent: 500, Accepted: 500, Lost: c.lost, Redelivered: c.redelivered}, 3)
			if got != c.want || note == "" {
				t.Errorf("got %q (%s), want %q", got, note, c.want)
			}
		})
	}
}

func TestSomeFindingsNoRowExcuses(t *testing.T) {
	for _, c := range []struct {
		fault  string
		counts ledger.Counts
		want   string
		note   string
	}{
		{FaultServiceKill, ledger.Counts{Phantom: 1}, VerdictContradiction, "1 delivered that nobody sent"},
		{FaultServiceKill, ledger.Counts{RejectedDelivered: 2}, VerdictContradiction, "2 rejected, yet delivered"},
		{FaultServiceKill, ledger.Counts{Stranded: 3}, VerdictContradiction, "3 stranded"},
		{FaultServiceKill, ledger.Counts{EffectDuplicates: 3, Redelivered: 1, ProducerDuplicates: 1}, VerdictContradiction, "1 effects more"},
		{FaultServiceKill, ledger.Counts{EffectDuplicates: 2, Redelivered: 1, ProducerDuplicates: 1, Recovered: 1, Lost: 5}, VerdictAsExpected, "5 lost in 1 trial"},
		{FaultNone, ledger.Counts{ProducerDuplicates: 1}, VerdictContradiction, "1 producer duplicates"},
		{FaultNone, ledger.Counts{EffectDuplicates: 1, ProducerDuplicates: 1}, VerdictContradiction, "1 effect duplicates"},
	} {
		row, err := Lookup("memory/bounded", c.fault)
		if err != nil {
			t.Fatal(err)
		}
		got, note := Verdict(row, Facts{}, c.counts, 1)
		if got != c.want || !strings.Contains(note, c.note) {
			t.Errorf("%s, %+v: got %q (%s), want %q (%s)", c.fault, c.counts, got, note, c.want, c.note)
		}
	}
}

func TestTheNoteSaysWhatSoManyTrialsBound(t *testing.T) {
	row, err := Lookup("rabbitmq/quorum", FaultBrokerKill)
	if err != nil {
		t.Fatal(err)
	}
	// From tables of the exact bound.
	for n, want := range map[int]string{1: "95 %", 3: "63.2 %", 10: "25.9 %", 59: "4.95 %", 299: "0.997 %"} {
		_, note := Verdict(row, Facts{}, ledger.Counts{}, n)
		if !strings.Contains(note, "above "+want+" per trial is excluded") {
			t.Errorf("%d trials: got %q, want it to exclude more than %s", n, note, want)
		}
	}
	if got, _ := Verdict(row, Facts{}, ledger.Counts{}, 0); got != VerdictInvalid {
		t.Errorf("no valid trial: got %q, want %q", got, VerdictInvalid)
	}
}
