package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"queuelab/bench/trial"
)

// program builds queuelab, with some source files replaced.
func program(t *testing.T, replaced map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, text := range replaced {
		abs, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		other := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[abs] = other
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "queuelab")
	if out, err := exec.Command("go", "build", "-overlay", file, "-ldflags=-s -w", "-o", binary, "queuelab/bench").CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	return binary
}

// It waits, for most of two minutes, and so do others beside it.
func TestTheHarnessReportsExactlyWhatWasInjected(t *testing.T) {
	t.Parallel()
	bin, err := buildBoth()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(bin, "queuelab")
	dir := t.TempDir()
	if out, err := exec.Command(binary, "calibrate", "--out", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, calibrateFile))
	if err != nil {
		t.Fatal(err)
	}
	var c trial.Calibration
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Cases) != len(trial.Calibrations()) || c.Floor.EndToEnd.N == 0 || c.Floor.RecordNanos <= 0 {
		t.Errorf("got %d cases and floor %+v, want %d and a floor", len(c.Cases), c.Floor, len(trial.Calibrations()))
	}
	for _, k := range c.Cases {
		if !k.OK || len(k.Injected) == 0 {
			t.Errorf("%s: %s", k.Name, k.Why)
		}
	}
}

// A recorder that is broken in one of the ways in which published tools are
// must not pass. Each is measured while the next is built.
func TestABrokenRecorderFailsTheCalibration(t *testing.T) {
	t.Parallel()
	var measured sync.WaitGroup
	defer measured.Wait()
	for _, m := range []struct{ name, file, good, bad, cases string }{
		{"latency from the send", "ledger/latency.go", "m.firstDelivery-m.due", "m.firstDelivery-m.intended", "frozen"}, // takes longest
		{"zero samples dropped", "ledger/latency.go", "case ns < 0:", "case ns == 0:\n\t\treturn\n\tcase ns < 0:", "zero latency"},
		{"clipped at a second", "ledger/latency.go", "\tswitch {\n\tcase ns < 0:", "\tns = min(ns, 1e9)\n\tswitch {\n\tcase ns < 0:", "two speeds"},
		{"average of percentiles", "trial/trials.go", "Publish: percentiles(t.publish), EndToEnd: percentiles(t.endToEnd)",
			"Publish: percentiles(t.publish), EndToEnd: func() (p Percentiles) {\n\t\tfor _, o := range t.each {\n\t\t\tq := percentiles(decode(o.EndToEnd))\n\t\t\tp.P50 += q.P50 / int64(len(t.each))\n\t\t\tp.P99 += q.P99 / int64(len(t.each))\n\t\t\tp.Max = max(p.Max, q.Max)\n\t\t\tp.N += q.N\n\t\t}\n\t\treturn p\n\t}()", "two speeds"},
		{"negative turned round", "ledger/latency.go", "\tswitch {\n\tcase ns < 0:", "\tns = max(ns, -ns)\n\tswitch {\n\tcase ns < 0:", "skewed clock"},
		{"losses forgotten", "ledger/account.go", "\tr.Lost++\n", "", "dropping"},
	} {
		source, err := os.ReadFile(m.file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(source), m.good) != 1 {
			t.Fatalf("%s: %s has %q %d times, want once", m.name, m.file, m.good, strings.Count(string(source), m.good))
		}
		binary := program(t, map[string]string{m.file: strings.Replace(string(source), m.good, m.bad, 1)})
		measured.Go(func() {
			cmd := exec.CommandContext(t.Context(), binary, "calibrate", "--cases", m.cases, "--attempts", "1")
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "OFF  "+m.cases) {
				t.Errorf("%s: got %v, want exit status 1 and %s off: %s", m.name, err, m.cases, out)
			}
		})
	}
}
