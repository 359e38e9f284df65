package claims

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"queuelab/queue"
)

func TestTheFileIsWhatIsWrittenOfWhatIsRead(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	var names []string // in the file's order
	for line := range strings.Lines(string(kept)) {
		if _, rest, ok := strings.Cut(line, `"setting":"`); ok {
			name, _, _ := strings.Cut(rest, `"`)
			names = append(names, name)
		}
	}
	if len(names) == 0 || len(names) != len(all) {
		t.Fatalf("got %d names and %d claims, want as many", len(names), len(all))
	}
	again, err := Encode(all, names)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again, kept) {
		t.Errorf("(-file +written)\n%s", cmp.Diff(string(kept), string(again)))
	}
}

func TestEveryFieldOfAClaimSurvivesTheFile(t *testing.T) {
	want := map[string]queue.Capabilities{
		"a/none": {},
		"a/all": {
			Guarantee: queue.AtLeastOnce, Confirm: queue.ConfirmReplicas, AckConfirmed: true, Attempts: queue.FlaggedByBroker, Broadcast: true,
			Groups: true, Nack: true, OrderedPerKey: true, Stored: true, Durable: true, Shared: true, Bounded: true, DropsOldest: true,
			LeaseFenced: true, PopGap: true, Replay: true, Routing: true, MayStrand: true, Skips: true,
		},
	}
	data, err := Encode(want, slices.Sorted(maps.Keys(want)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWhatIsNotUnderstoodIsNoClaim(t *testing.T) {
	const good = `{"setting":"a/b","guarantee":"at least once","confirm":"disk","attempts":"not counted","can":["Durable"]}`
	if _, err := Decode([]byte("[" + good + "]")); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"an unknown ability":   "[" + strings.Replace(good, "Durable", "Flies", 1) + "]",
		"a field that is none": "[" + strings.Replace(good, "Durable", "Confirm", 1) + "]",
		"an unknown guarantee": "[" + strings.Replace(good, "at least once", "exactly once", 1) + "]",
		"an unknown confirm":   "[" + strings.Replace(good, "disk", "paper", 1) + "]",
		"an unknown counter":   "[" + strings.Replace(good, "not counted", "guessed", 1) + "]",
		"a setting twice":      "[" + good + "," + good + "]",
		"no name":              "[" + strings.Replace(good, "a/b", "", 1) + "]",
		"an unknown field":     "[" + strings.Replace(good, "can", "cannot", 1) + "]",
		"half a file":          "[" + good,
	} {
		if got, err := Decode([]byte(data)); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}
	if _, err := Encode(nil, []string{"a/b"}); err == nil {
		t.Error("got no error of a setting without claims")
	}
}
