package trial

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"queuelab/bench/ledger"
)

// struckTrial is a trial with one message for each place.
func struckTrial(name string) Evidence {
	e := Evidence{
		Trial: name, Effects: map[string]int{}, Notes: []string{"a note"},
		Processes: map[uint16]Part{1: {Role: "producer"}, 50: {Role: "consumer", Victim: true}, 99: {Role: "harness"}},
	}
	at := int64(0)
	add := func(seq uint64, process uint16, ev ledger.Event, arg uint32) {
		at += 1_000_000
		e.Records = append(e.Records, ledger.Record{Event: ev, Process: process, Trial: 1, Producer: 1, Seq: seq, At: at, Arg: arg})
	}
	for seq := range uint64(6) {
		add(seq, 1, ledger.Intent, 0)
	}
	add(0, 1, ledger.Accepted, 0) // delivered, done
	add(0, 50, ledger.Delivered, 1)
	add(0, 50, ledger.Effect, 0)
	e.Effects["1-1-0-0"] = 1
	add(1, 1, ledger.Accepted, 0) // in the victim's hand
	add(1, 50, ledger.Delivered, 1)
	add(2, 1, ledger.Accepted, 0) // gone
	add(3, 1, ledger.Accepted, 1) // nobody heard it
	add(4, 1, ledger.Unknown, 0)
	add(5, 1, ledger.Accepted, 0) // acked, without an effect
	add(5, 50, ledger.Delivered, 1)
	add(5, 50, ledger.Acked, 1)
	e.Records = append(e.Records, ledger.Record{Event: ledger.FaultConfirmed, Process: 99, Trial: 1, At: at + 1_000_000})
	return e
}

func TestEachMessageIsLostAtItsPlace(t *testing.T) {
	e := struckTrial("redis-list/aof-no:power-loss:1")
	for seq, want := range []Place{PlaceNotLost, PlaceHandler, PlaceBroker, PlaceUnheard, PlaceNoPromise, PlaceSkipped} {
		if got := e.Place(ledger.ID{Trial: 1, Producer: 1, Seq: uint64(seq)}); got != want {
			t.Errorf("message %d: got %q, want %q", seq, got, want)
		}
	}
	lost := ledger.ID{Trial: 1, Producer: 1, Seq: 2}
	for name, want := range map[string]Place{
		"rabbitmq/no-mandatory:unroutable:1":           PlaceUnrouted,
		"rabbitmq/drop-head:queue-limit:1":             PlaceOverflow,
		"redis-list/aof-everysec:lost-reply-receive:1": PlaceWire,
	} {
		e.Trial = name
		if got := e.Place(lost); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestTheStoryOfAMessageIsToldFromTheLedgerThatWasKept(t *testing.T) {
	const name = "redis-list/aof-no:power-loss:1"
	dir := t.TempDir()
	if err := keepEvidence(filepath.Join(dir, EvidenceDir), struckTrial(name)); err != nil {
		t.Fatal(err)
	}
	e, err := ReadEvidence(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	for message, want := range map[string][]string{
		"1-1-0-1": {"about to be published by producer 1", "accepted", "delivered to consumer 50, the victim", "-- fault confirmed --", "0 committed effects. Lost at the consumer"},
		"1-1-0-0": {"1 committed effects. Not lost."},
		"":        {"process 50: consumer, the victim", "a note", "6 sent: 5 accepted, 0 rejected, 1 unknown; 4 lost", "1 lost at the broker", "1-1-0-2"},
	} {
		var b strings.Builder
		if err := Explain(&b, e, message); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("message %q: want %q in\n%s", message, w, b.String())
			}
		}
	}
	for message, want := range map[string]string{"1-1-0-77": "no message", "nonsense": "message id"} {
		if err := Explain(&strings.Builder{}, e, message); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("message %q: got %v, want an error with %q", message, err, want)
		}
	}
}

func TestALedgerThatIsMissingOrDamagedIsSaidSo(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadEvidence(dir, "a/b:c:1"); err == nil || !strings.Contains(err.Error(), "no ledger of the trial") {
		t.Errorf("a missing one: got %v", err)
	}
	if err := keepEvidence(filepath.Join(dir, EvidenceDir), struckTrial("a/b:c:1")); err != nil {
		t.Fatal(err)
	}
	path := evidencePath(filepath.Join(dir, EvidenceDir), "a/b:c:1")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b[:len(b)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadEvidence(dir, "a/b:c:1"); err == nil || !strings.Contains(err.Error(), "read the ledger") {
		t.Errorf("half of one: got %v, want an error that says so", err)
	}
}
