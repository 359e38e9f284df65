package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"queuelab/bench/broker"
	"queuelab/bench/learn"
	"queuelab/bench/learn/lessons"
)

func TestEachKindOfBrokerCanBeGivenByURL(t *testing.T) {
	dead := map[string]string{
		"redis": "redis://127.0.0.1:1/0", "rabbitmq": "amqp://127.0.0.1:1/", "kafka": "kafka://127.0.0.1:1",
		"postgres": "postgres://lab@127.0.0.1:1/lab", "nats": "nats://127.0.0.1:1",
		"kafka-3": "kafka://127.0.0.1:1,127.0.0.1:2", "rabbitmq-3": "amqp://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3/",
		"redis-sentinel": "redis://127.0.0.1:1/0?master=lab&sentinel=127.0.0.1:2,127.0.0.1:3",
	}
	backend := map[string]string{"redis": "redis-list"}
	for _, kind := range append(broker.Kinds(), broker.Clusters()...) {
		setting := kind
		if b := backend[kind]; b != "" {
			setting = b
		}
		_, _, err := command(t, "faults", "run", "--settings", setting, "--faults", "none", "--"+kind, dead[kind], "--out", filepath.Join(t.TempDir(), "out"))
		if err == nil || !strings.HasPrefix(err.Error(), "--"+kind+": "+kind+" does not answer") {
			t.Errorf("--%s at a dead address: got %v, want an error that begins with the flag, before anything is measured", kind, err)
		}
	}
	for _, args := range [][]string{{"learn", "2", "--no-ask"}, {"museum", "1"}, {"exam", "--questions", "53", "--answers", strings.Repeat("0,", 52) + "0"}, {"learn", "--book", t.TempDir()}} {
		_, _, err := command(t, append(args, "--redis", dead["redis"])...)
		if err == nil || !strings.HasPrefix(err.Error(), "--redis: redis does not answer") {
			t.Errorf("%v at a dead address: got %v, want an error that begins with the flag, and no lesson that measures something else", args, err)
		}
	}
	if _, _, err := command(t, "museum", "--list", "--redis", dead["redis"]); err != nil {
		t.Errorf("got %v of a list, want that it asks no broker", err)
	}
}

func TestManyLessonsAreALineEachUnlessSomebodyPredictedOrWantsTheWire(t *testing.T) {
	for _, c := range []struct {
		transcript        string
		n                 int
		all, predicted    bool
		brief, transcribe bool
	}{
		{"auto", 3, false, false, false, true}, {"auto", 4, false, false, true, false}, {"auto", 1, true, false, true, false},
		{"auto", 4, false, true, false, false}, {"yes", 4, false, false, false, true}, {"yes", 1, true, false, false, true},
		{"no", 3, false, true, false, false}, {"no", 4, false, false, true, false},
	} {
		brief, transcribe := learnCmd{Transcript: c.transcript, All: c.all}.shows(c.n, c.predicted)
		if brief != c.brief || transcribe != c.transcribe {
			t.Errorf("%+v: got %v, %v", c, brief, transcribe)
		}
	}
}

func TestWhereNobodyAnswersItIsSaidWhatToDo(t *testing.T) {
	var said bytes.Buffer
	e := &env{ctx: t.Context(), stdin: strings.NewReader("2\n"), stderr: &said}
	guesses, err := predictions(e, lessons.All()[:3], learn.EN, "--answers gives the predictions")
	if err != nil || len(guesses) != 1 || !strings.Contains(said.String(), "\nqueuelab: nobody answers; --answers gives the predictions\n") {
		t.Errorf("got %v, %v, %q, want the one prediction, and on a line of its own what to do", guesses, err, &said)
	}
}
