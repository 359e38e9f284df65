package trial

import (
	"bytes"
	"compress/gzip"
	"io"
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
	if got := e.Place(ledger.ID{Trial: 1, Producer: 1, Seq: 77}); got != PlaceNotSent {
		t.Errorf("a message that nobody sent: got %q, want %q", got, PlaceNotSent)
	}
	lost := ledger.ID{Trial: 1, Producer: 1, Seq: 2}
	for name, want := range map[string]Place{
		"kafka/auto-commit:consumer-kill-mid-handle:1":  PlaceSkipped,
		"rabbitmq/transient:consumer-kill-mid-handle:1": PlaceWire,
		"rabbitmq/no-mandatory:unroutable:1":            PlaceUnrouted,
		"rabbitmq/drop-head:queue-limit:1":              PlaceOverflow,
		"redis-list/aof-everysec:lost-reply-receive:1":  PlaceWire,
	} {
		e.Trial = name
		if got := e.Place(lost); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	e.Remaining = []string{lost.String()}
	if got := e.Place(lost); got != PlaceStranded {
		t.Errorf("a message that may still be in the queue: got %q, want %q", got, PlaceStranded)
	}
}

// A queue in a process gives nothing out on a wire.
func TestWhatDiedWithItsProcessIsSaidSo(t *testing.T) {
	e := Evidence{Trial: "memory/bounded:consumer-kill-mid-handle:1", Processes: map[uint16]Part{50: {Role: "consumer", Victim: true}}}
	for at, ev := range []ledger.Event{ledger.Intent, ledger.Accepted} {
		e.Records = append(e.Records, ledger.Record{Event: ev, Process: 50, Producer: 50, Trial: 1, At: int64(at + 1)})
	}
	var b strings.Builder
	if err := Explain(&b, e, ""); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"producer and consumer, the victim", "1 lost in the process"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("want %q in\n%s", want, b.String())
		}
	}
}

// What is neither handled nor lost is somewhere too.
func TestTheStoryOfATrialLeavesNoMessageOut(t *testing.T) {
	e := struckTrial("redis-list/aof-no:power-loss:1")
	e.Remaining = []string{"1-1-0-2"}
	e.Records = append(e.Records, ledger.Record{Event: ledger.DeadLettered, Process: 50, Trial: 1, Producer: 1, Seq: 1, At: 1 << 40})
	var b strings.Builder
	if err := Explain(&b, e, ""); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"; 2 lost", "1 dead-lettered", "1 stranded"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("want %q in\n%s", want, b.String())
		}
	}
	e.Effects["1-1-0-3"] = 1 // which nobody was given
	if err := Explain(&b, e, ""); err != nil || !strings.Contains(b.String(), "does not balance") {
		t.Errorf("got %v and\n%s\nwant it to say that the ledger does not balance", err, b.String())
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
		"1-1-0-1": {"about to be published by producer 1", "accepted", "delivered to consumer 50, the victim", "-- fault confirmed --", "0 committed effects. Lost in the consumer"},
		"1-1-0-0": {"1 committed effects. Not lost."},
		"":        {"process 50: consumer, the victim", "a note", "6 sent: 5 accepted, 0 rejected, 1 unknown; 4 lost", "1 lost in the broker", "1-1-0-2"},
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
		var b strings.Builder
		if err := Explain(&b, e, message); err == nil || !strings.Contains(err.Error(), want) || b.Len() > 0 {
			t.Errorf("message %q: got %v and %q, want an error with %q and no story", message, err, b.String(), want)
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
	// Cut between two records it is a ledger like any other, but for its count.
	short := struckTrial("a/b:c:1")
	if err := keepEvidence(filepath.Join(dir, EvidenceDir), short); err != nil {
		t.Fatal(err)
	}
	rewrite(t, path, func(lines []string) []string { return lines[:len(lines)-2] })
	if _, err := ReadEvidence(dir, "a/b:c:1"); err == nil || !strings.Contains(err.Error(), "says that it has") {
		t.Errorf("one without its last records: got %v, want an error that counts them", err)
	}
	if err := os.Rename(path, evidencePath(filepath.Join(dir, EvidenceDir), "a/b:c:2")); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadEvidence(dir, "a/b:c:2"); err == nil || !strings.Contains(err.Error(), `of the trial "a/b:c:1"`) {
		t.Errorf("another trial's: got %v, want an error that names it", err)
	}
}

// rewrite changes the lines of a compressed file.
func rewrite(t *testing.T, path string, change func([]string) []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	for _, line := range change(strings.SplitAfter(string(b), "\n")) {
		if _, err := io.WriteString(w, line); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
