package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"queuelab/bench/broker/brokertest"
	"queuelab/bench/sale"
)

// saleArgs are a sale of seconds, with nothing installed.
func saleArgs(t *testing.T, more ...string) []string {
	t.Helper()
	bin, err := buildBoth()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"sale", "--zero", "--seckill", filepath.Join(bin, "seckill"), "--buyers", "300", "--stock", "60", "--rate", "600",
		"--ways", "sync,queue,queue-first,two-databases"}, more...)
}

func TestWaysOfSellingAreComparedWithNothingInstalled(t *testing.T) {
	t.Parallel()
	out, stderr, err := command(t, saleArgs(t, "--json", "--seed", "7")...)
	var exit exitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var r sale.Result
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if len(r.Rows) != 4 || !r.Complete || r.Load.Seed != 7 {
		t.Fatalf("got %d rows, complete %v, seed %d, want 4 of a whole run with seed 7:\n%s", len(r.Rows), r.Complete, r.Load.Seed, stderr)
	}
	for _, x := range r.Rows {
		if x.Error != "" || x.Sold != 60 || x.Oversold+x.Undersold+x.Double+x.LostOrders+x.Waiting != 0 {
			t.Errorf("%s %s: got %q and %+v, want 60 sold and nothing wrong", x.Way, x.Setting, x.Error, x.Sale)
		}
		for _, why := range x.Invalid {
			// What the machine could not do is no fault of the sale.
			if !strings.HasPrefix(why, "the buyers did not come as planned") {
				t.Errorf("%s %s: got %q, want a valid sale", x.Way, x.Setting, why)
			}
		}
		if x.AnswerMicros == nil || x.AnswerMicros.N != 300 || x.AnswerMicros.P50 <= 0 || x.AnswerMicros.P99 < x.AnswerMicros.P50 {
			t.Errorf("%s %s: got answers %+v, want those of 300 buyers", x.Way, x.Setting, x.AnswerMicros)
		}
		if x.Way == "sync" && (x.Setting != "" || x.Failed != 0) || x.Way != "sync" && x.Setting != "memory/bounded" {
			t.Errorf("got a row %q over %q with %d failed", x.Way, x.Setting, x.Failed)
		}
	}
}

func TestASaleIsATableOrALineForEachSale(t *testing.T) {
	t.Parallel()
	args := saleArgs(t, "--ways", "queue", "--trials", "2")
	out, _, err := command(t, args...)
	var exit exitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for _, want := range []string{"300 buyers for 60 units", "SQLite", "medians of 2 trials", "memory/bounded", "orders"} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	out, _, err = command(t, append(args, "--csv")...)
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(lines) != 3 || lines[1][0] != "queue" || lines[1][2] == lines[2][2] {
		t.Errorf("got %v, %v, want a head and two trials of one way", lines, err)
	}
}

func TestASaleThatIsInterruptedLeavesNothing(t *testing.T) {
	bin, err := buildBoth()
	if err != nil {
		t.Fatal(err)
	}
	const mark = "QUEUELAB_SALE_TEST=interrupted"
	run := exec.Command(filepath.Join(bin, "queuelab"), "sale", "--zero", "--ways", "queue", "--buyers", "20000", "--stock", "10", "--rate", "200")
	run.Env = append(os.Environ(), mark)
	var stderr bytes.Buffer
	run.Stderr = &stderr
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	// The harness, the guard and the service.
	brokertest.UntilMarked(t, mark, "the sale is under way", func(ps []string) bool { return len(ps) >= 3 })
	if err := run.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait() // the status is what is asked for
	if code := run.ProcessState.ExitCode(); code != 130 {
		t.Errorf("got exit status %d, want 130: %s", code, stderr.String())
	}
	brokertest.UntilMarked(t, mark, "nothing outlives the sale", func(ps []string) bool { return len(ps) == 0 })
}

func TestWrongUsageOfASaleIsOneSentence(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an unknown way":          {[]string{"--ways", "later"}, "there are sync, queue"},
		"an unknown queue":        {[]string{"--queues", "carrier-pigeon"}, "unknown backend or setting"},
		"no buyers":               {[]string{"--buyers", "0"}, "--buyers=0"},
		"a rate that is none":     {[]string{"--rate", "0"}, "--rate=0"},
		"zero with a real broker": {[]string{"--zero", "--queues", "kafka"}, "--zero"},
		"two forms":               {[]string{"--json", "--csv"}, "--csv"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, err := command(t, append([]string{"sale"}, c.args...)...)
			if !errors.Is(err, exitError(2)) || !strings.Contains(stderr, c.want) {
				t.Errorf("got %v and %q, want status 2 and a sentence with %q", err, stderr, c.want)
			}
		})
	}
}
