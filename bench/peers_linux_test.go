package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"queuelab/bench/broker/brokertest"
	"queuelab/bench/peers"
)

func TestPeersRefusesWhatItCannotDo(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, peers.File), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a backend without a tool": {[]string{"--backends", "memory"}, "redis-list, redis-streams, redis-pubsub, rabbitmq, kafka"},
		"no pairs":                 {[]string{"--pairs", "0"}, "--pairs=0"},
		"no scale":                 {[]string{"--scale", "0"}, "--scale=0"},
		"a result that is there":   {[]string{"--out", full}, "--force"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, err := command(t, append([]string{"peers"}, c.args...)...)
			if err == nil || !strings.Contains(stderr+err.Error(), c.want) {
				t.Errorf("got %v and %q, want an error that names %q", err, stderr, c.want)
			}
		})
	}
	if out, _, err := command(t, "peers", "--help"); err != nil || !strings.Contains(out, "queuelab peers --backends") {
		t.Errorf("--help: got %v and no example in\n%s", err, out)
	}
}

func TestPeersEndsAsTheResultSays(t *testing.T) {
	reached := peers.Result{Rows: []peers.Row{{Reached: true}}, Latency: []peers.LatencyRow{{Reached: true}}}
	missed := peers.Result{Rows: []peers.Row{{Reached: true}, {}}}
	slow := peers.Result{Latency: []peers.LatencyRow{{}}}
	lacking := peers.Result{Rows: reached.Rows, Skipped: []peers.Skipped{{Reason: "no PerfTest"}}}
	broken := peers.Result{Rows: reached.Rows, Failed: []peers.Skipped{{Reason: "it broke"}}}
	empty := peers.Result{Skipped: []peers.Skipped{{Reason: "no Redis"}}}
	for _, c := range []struct {
		what        string
		result      peers.Result
		check       bool
		interrupted bool
		want        string
	}{
		{"all is reached", reached, true, false, ""},
		{"a miss is printed", missed, false, false, ""},
		{"a miss that is checked", missed, true, false, "exit status 3"},
		{"a slow one that is checked", slow, true, false, "exit status 3"},
		{"a row skipped", lacking, false, false, ""},
		{"a row skipped that is checked", lacking, true, false, "exit status 3"},
		{"a row failed", broken, false, false, "it broke"},
		{"nothing measured", empty, false, false, "no Redis"},
		{"an interrupt", broken, true, true, "exit status 130"},
	} {
		got := ""
		if err := (&peersCmd{Check: c.check}).conclude(c.result, c.interrupted); err != nil {
			got = err.Error()
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
}

func needTools(t *testing.T) {
	t.Helper()
	brokertest.Need(t, "redis")
	brokertest.NeedProgram(t, "redis-benchmark")
}

func TestPeersMeasuresAndSaysSo(t *testing.T) {
	needTools(t)
	bin, err := buildBoth()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, filepath.Join(bin, "queuelab"), "peers", "--backends", "redis-list", "--pairs", "1", "--scale", "0.01", "--json", "--out", dir)
	var stdout, stderr bytes.Buffer
	run.Stdout, run.Stderr = &stdout, &stderr
	if err := run.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	kept, err := os.ReadFile(filepath.Join(dir, peers.File))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, stdout.Bytes()) {
		t.Errorf("--json printed\n%s\nand the file holds\n%s", stdout.String(), kept)
	}
	var r peers.Result
	if err := json.Unmarshal(kept, &r); err != nil || !r.Complete || len(r.Rows) != 4 || len(r.Latency) != 1 || r.Host.Cores == 0 || r.Versions["redis"] == "" {
		t.Errorf("got %v and %s, want 4 rows and a latency, the host and the versions", err, kept)
	}
	if !strings.Contains(stderr.String(), "redis-list publish") || !strings.Contains(r.Note, "at least 3") {
		t.Errorf("got progress %q and note %q, want what is measured, and that one pair is no median", stderr.String(), r.Note)
	}
}

func TestNothingOutlivesPeers(t *testing.T) {
	t.Parallel()
	needTools(t)
	bin, err := buildBoth()
	if err != nil {
		t.Fatal(err)
	}
	has := func(ps []string, what string) bool {
		for _, p := range ps {
			if strings.Contains(p, what) && !strings.Contains(p, "guard") {
				return true
			}
		}
		return false
	}
	for _, c := range []struct {
		sig          syscall.Signal
		side, during string
	}{
		{syscall.SIGKILL, "the tool", "redis-benchmark"}, {syscall.SIGINT, "the tool", "redis-benchmark"},
		{syscall.SIGKILL, "our side", "peers-side"}, {syscall.SIGTERM, "our side", "peers-side"},
	} {
		// A name with the program in it would be in the arguments of all.
		t.Run(fmt.Sprintf("%v while %s runs", c.sig, c.side), func(t *testing.T) {
			mark, dir := "QUEUELAB_KILL_TEST="+t.Name()+strconv.FormatInt(time.Now().UnixNano(), 36), t.TempDir()
			run := exec.Command(filepath.Join(bin, "queuelab"), "peers", "--backends", "redis-streams", "--scale", "0.2", "--out", dir)
			run.Env = append(os.Environ(), mark)
			var stderr bytes.Buffer
			run.Stderr = &stderr
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			brokertest.UntilMarked(t, mark, c.during+" runs", func(ps []string) bool { return has(ps, c.during) })
			if err := run.Process.Signal(c.sig); err != nil {
				t.Fatal(err)
			}
			err := run.Wait()
			brokertest.UntilMarked(t, mark, "nothing is left", func(ps []string) bool { return len(ps) == 0 })
			if c.sig == syscall.SIGKILL {
				return
			}
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 130 {
				t.Errorf("got %v, want exit status 130: %s", err, stderr.String())
			}
			var r peers.Result
			data, err := os.ReadFile(filepath.Join(dir, peers.File))
			if err == nil {
				err = json.Unmarshal(data, &r)
			}
			if err != nil || r.Complete {
				t.Errorf("got %v, complete %v, want a result that says that it is not all", err, r.Complete)
			}
		})
	}
}
