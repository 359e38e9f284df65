package host

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"queuelab/bench/trial"
)

func TestFactsDescribeThisMachineAndLeaveNothing(t *testing.T) {
	dir := t.TempDir()
	h := Facts(t.Context(), dir)
	if h.Cores < 1 || h.Kernel == "" || h.CPU == "" {
		t.Errorf("got %+v, want cores, kernel and CPU", h)
	}
	if f := h.FsyncMicros; f.P50 < 1 || f.P99 < f.P50 {
		t.Errorf("got fsync %+v, want 1 <= p50 <= p99", f)
	}
	if runtime.GOOS == "linux" && h.MemoryBytes < 1<<20 {
		t.Errorf("got %d bytes of memory", h.MemoryBytes)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("got %v left behind (%v), want nothing", left, err)
	}
}

func TestFsyncIsZeroWhereItCannotBeMeasured(t *testing.T) {
	if got := fsyncLatency(t.Context(), filepath.Join(t.TempDir(), "absent")); got != (trial.Fsync{}) {
		t.Errorf("no directory: got %+v, want zero", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := fsyncLatency(ctx, t.TempDir()); got != (trial.Fsync{}) {
		t.Errorf("cancelled: got %+v, want zero", got)
	}
}

func TestQuantileIsTheSmallestValueThatEnoughDoNotExceed(t *testing.T) {
	hundred := make([]int64, 100)
	for i := range hundred {
		hundred[i] = int64(i + 1)
	}
	for _, c := range []struct {
		values  []int64
		percent int
		want    int64
	}{{[]int64{7}, 50, 7}, {[]int64{7}, 99, 7}, {[]int64{1, 2}, 50, 1}, {[]int64{1, 2, 3}, 50, 2}, {hundred, 50, 50}, {hundred, 99, 99}, {hundred, 100, 100}} {
		if got := quantile(c.values, c.percent); got != c.want {
			t.Errorf("quantile(%d values, %d): got %d, want %d", len(c.values), c.percent, got, c.want)
		}
	}
}

func TestJavaMajorKnowsOldAndNewNumbers(t *testing.T) {
	for version, want := range map[string]int{"17.0.15": 17, "21": 21, "1.8.0": 8, "11.0.2": 11} {
		if got, ok := javaMajor(version); got != want || !ok {
			t.Errorf("javaMajor(%q): got %d, %v, want %d", version, got, ok, want)
		}
	}
	if _, ok := javaMajor(""); ok {
		t.Error("no version: got one")
	}
}

// bare is a machine with nothing on its PATH but what files hold.
func bare(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("JAVA_HOME", "")
	t.Setenv("QUEUELAB_KAFKA_LIBS", dir)
}

func find(t *testing.T, r Report, name string) Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q in %+v", name, r.Checks)
	return Check{}
}

func TestABareMachineRunsSmokeAndSaysHowToGetTheRest(t *testing.T) {
	bare(t, nil)
	r := Examine(t.Context(), t.TempDir())
	for _, name := range []string{"redis-server", "Java", "Kafka jars", "Erlang"} {
		if c := find(t, r, name); c.State != Missing || c.Get != setup {
			t.Errorf("%s: got %q, get it with %q, want missing and %q", name, c.State, c.Get, setup)
		}
	}
	if !r.OK || !r.Suites[0].Runs {
		t.Errorf("got smoke %+v, want it to run", r.Suites[0])
	}
	for _, s := range r.Suites[1:] {
		if !strings.Contains(s.Note, "redis, rabbitmq, kafka") {
			t.Errorf("%s: got the note %q, want it to name redis, rabbitmq and kafka", s.Name, s.Note)
		}
	}
}

func TestJavaThatIsTooOldIsNotTakenForKafka(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("brokers run natively on Linux only")
	}
	bare(t, map[string]string{"java": "#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n", "kafka_2.13-4.3.1.jar": ""})
	r := Examine(t.Context(), t.TempDir())
	if c := find(t, r, "Java"); c.State != Poor || !strings.Contains(c.Found, "17 or later") {
		t.Errorf("got %+v, want poor, and that 17 is needed", c)
	}
	if c := find(t, r, "Kafka jars"); c.State != OK || c.Found != "4.3.1" {
		t.Errorf("got %+v, want ok and 4.3.1", c)
	}
	if note := r.Suites[1].Note; !strings.Contains(note, "kafka") {
		t.Errorf("got the note %q, want it to name kafka", note)
	}
}

func TestADirectoryThatCannotBeWrittenToFailsTheDoctor(t *testing.T) {
	bare(t, nil)
	r := Examine(t.Context(), filepath.Join(t.TempDir(), "absent"))
	if r.OK || r.Suites[0].Runs || r.Suites[1].Runs {
		t.Errorf("got ok %v and suites %+v, want none to run", r.OK, r.Suites)
	}
}

func TestDoctorPrintsOneLineForEachThing(t *testing.T) {
	bare(t, nil)
	var plain, colored, machine bytes.Buffer
	if !Doctor(t.Context(), &plain, false) || !Doctor(t.Context(), &colored, true) {
		t.Error("got not ok, want ok: smoke needs nothing")
	}
	if strings.ContainsRune(plain.String(), '\x1b') || !strings.Contains(colored.String(), "\x1b[1;31mmissing") {
		t.Error("colours are for those who ask for them")
	}
	for _, want := range []string{"missing  redis-server", "get it: make setup", "suite smoke  can run", "suite quick"} {
		if !strings.Contains(plain.String(), want) {
			t.Errorf("no %q in:\n%s", want, plain.String())
		}
	}
	ok, err := DoctorJSON(t.Context(), &machine)
	if err != nil || !ok {
		t.Fatalf("got %v, %v, want ok", ok, err)
	}
	var got Report
	if err := json.Unmarshal(machine.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := Examine(t.Context(), os.TempDir())
	volatile := cmpopts.IgnoreFields(Check{}, "Found", "State", "kind")
	if diff := cmp.Diff(want.Checks, got.Checks, volatile); diff != "" {
		t.Errorf("the JSON differs (-want +got):\n%s", diff)
	}
}
