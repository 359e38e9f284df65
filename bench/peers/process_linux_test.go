package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"queuelab/bench/broker/brokertest"
)

// runASide is the body of a harness that a test kills.
func runASide(mark string) error {
	p := process{argv: []string{"sleep", "1000"}, env: []string{mark}}
	_, err := p.run(context.Background(), time.Hour)
	return err
}

func newMark(t *testing.T) string {
	return fmt.Sprintf("QUEUELAB_PEERS_TEST=%s-%d", t.Name(), time.Now().UnixNano())
}

func sleeps(ps []string) bool {
	for _, p := range ps {
		if strings.Contains(p, " sleep 1000") && !strings.Contains(p, "guard") {
			return true
		}
	}
	return false
}

func none(ps []string) bool { return len(ps) == 0 }

func TestAProcessThatDoesNotEndIsKilledAtItsDeadline(t *testing.T) {
	mark := newMark(t)
	p := process{argv: []string{"sh", "-c", "echo before; exec sleep 1000"}, env: []string{mark}}
	_, err := p.run(t.Context(), 500*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "did not end within 500ms") {
		t.Errorf("got %v, want an error that names the deadline", err)
	}
	brokertest.UntilMarked(t, mark, "nothing is left", none)
}

func TestAProcessEndsWithItsContext(t *testing.T) {
	mark := newMark(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := process{argv: []string{"sleep", "1000"}, env: []string{mark}}.run(ctx, time.Hour)
		ended <- err
	}()
	brokertest.UntilMarked(t, mark, "it runs", sleeps)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	brokertest.UntilMarked(t, mark, "nothing is left", none)
}

// A tool does not watch whether the harness lives.
func TestNothingOutlivesAKilledHarness(t *testing.T) {
	for round := range 5 {
		mark := newMark(t)
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		harness := exec.Command(self, "run-a-side-and-die", mark)
		harness.Stderr = io.Discard
		if err := harness.Start(); err != nil {
			t.Fatal(err)
		}
		brokertest.UntilMarked(t, mark, fmt.Sprintf("round %d: it runs", round), sleeps)
		if err := harness.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = harness.Wait() // it was killed
		brokertest.UntilMarked(t, mark, "nothing is left", none)
	}
}

func TestAFailureQuotesWhatWasWritten(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		says   []string
	}{
		"an exit status":   {"echo to stdout; echo to stderr >&2; exit 3", []string{"exit status 3", "to stdout", "to stderr"}},
		"a signal":         {"echo before; kill -TERM $$", []string{"terminated", "before"}},
		"a flood":          {"head -c 3000000 /dev/zero | tr '\\0' x", []string{"more than", "xxx"}},
		"a long complaint": {"seq 1 100; exit 1", []string{"  1\n", "… 87 lines …", "  100"}},
		"silence":          {"exit 1", []string{"(nothing)"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := process{argv: []string{"sh", "-c", c.script}}.run(t.Context(), time.Minute)
			if err == nil {
				t.Fatal("got no error")
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want it to say %q", err, want)
				}
			}
		})
	}
}

func TestAProgramThatIsNotThereIsAnError(t *testing.T) {
	_, err := process{argv: []string{"/nonexistent/tool"}}.run(t.Context(), time.Minute)
	if err == nil || !strings.Contains(err.Error(), "/nonexistent/tool") {
		t.Errorf("got %v, want an error that names the program", err)
	}
}

func TestAProcessGetsItsOwnEnvironment(t *testing.T) {
	t.Setenv("PEERS_TEST_OMITTED", "seen")
	out, err := process{argv: []string{"sh", "-c", `echo "[$PEERS_TEST_OMITTED][$PEERS_TEST_ADDED]"`},
		env: []string{"PEERS_TEST_ADDED=added"}, omit: []string{"PEERS_TEST_OMITTED"}}.run(t.Context(), time.Minute)
	if err != nil || out != "[][added]\n" {
		t.Errorf("got %q, %v, want [][added]", out, err)
	}
}

func TestARateThatIsNotUnderstoodQuotesTheWholeOutput(t *testing.T) {
	p := process{argv: []string{"sh", "-c", "echo surprise; echo more"}, rate: parseRedisBenchmark}
	_, err := p.measure(t.Context(), time.Minute)
	if err == nil || !strings.Contains(err.Error(), `"surprise"`) || !strings.Contains(err.Error(), "  more") {
		t.Errorf("got %v, want an error that quotes the line and what came after it", err)
	}
}
