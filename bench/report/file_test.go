package report

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/trial"
)

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	for name, result := range map[string]trial.Result{"sample": sample(), "full": sampleFull(), "hostile": hostile(), "empty": {}} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", "b")
			if err := Write(dir, result, Options{}); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{dir, filepath.Join(dir, ResultFile)} {
				got, err := Read(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(normal(result), got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", path, diff)
				}
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, e := range entries {
				names = append(names, e.Name())
			}
			if diff := cmp.Diff([]string{HTMLFile, MarkdownFile, ResultFile}, names); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoListInTheJSONIsNull(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, trial.Result{Cells: []trial.Cell{{}}}, Options{}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"schema": 1`, `"args": []`, `"invalidReasons": []`, `"effectiveSettings": {}`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %s in:\n%s", want, data)
		}
	}
}

func TestARateThatJSONCannotHoldDoesNotLoseTheRun(t *testing.T) {
	dir := t.TempDir()
	result := trial.Result{Run: trial.Run{Host: trial.Host{Load1: math.Inf(1)}, Floor: &trial.Floor{RecordNanos: math.NaN()}}, Cells: []trial.Cell{{Test: trial.TestThroughput, RatePerSecond: math.NaN(),
		Spread: map[string]trial.Interval{"ratePerSecond": {Median: math.NaN()}}, Cost: &trial.Cost{ClientCPUSeconds: math.Inf(1)}, SLO: &trial.SLO{Curve: []trial.RatePoint{{Achieved: math.NaN()}}}}}}
	if err := Write(dir, result, Options{}); err != nil {
		t.Fatal(err)
	}
	got, err := Read(dir)
	if !math.IsNaN(result.Run.Floor.RecordNanos) || !math.IsInf(result.Cells[0].Cost.ClientCPUSeconds, 1) {
		t.Error("the caller's result was changed")
	}
	if err != nil || got.Cells[0].RatePerSecond != 0 {
		t.Errorf("got %+v, %v, want a rate of 0", got.Cells, err)
	}
}

func TestAResultIsNotReplacedUnlessForced(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	first, second := trial.Result{Run: trial.Run{ID: "first"}}, trial.Result{Run: trial.Run{ID: "second"}}
	if err := Write(dir, first, Options{}); err != nil {
		t.Fatalf("a directory with other files: %v", err)
	}
	err := Write(dir, second, Options{})
	if !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "--out") || !strings.Contains(err.Error(), "--force") {
		t.Errorf("got %v, want ErrExists that names --out and --force", err)
	}
	if err := Claim(dir, false); !errors.Is(err, ErrExists) {
		t.Errorf("Claim: got %v, want ErrExists", err)
	}
	if got, _ := Read(dir); got.Run.ID != "first" {
		t.Errorf("got %q, want the first result untouched", got.Run.ID)
	}
	if err := Write(dir, second, Options{Force: true}); err != nil {
		t.Fatal(err)
	}
	if got, _ := Read(dir); got.Run.ID != "second" {
		t.Errorf("got %q, want the second result", got.Run.ID)
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "notes.txt")); string(data) != "mine" {
		t.Error("another file was touched")
	}
}

func TestADirectoryThatCannotBeHadIsKnownBeforeTheRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below"), "/proc/nowhere"} {
		if err := Claim(dir, false); err == nil {
			t.Errorf("%s: got no error", dir)
		}
	}
}

func TestRenderLeavesTheResultAlone(t *testing.T) {
	dir := t.TempDir()
	foreign := []byte(`{"schema":1,"later":"kept"}`)
	if err := os.WriteFile(filepath.Join(dir, ResultFile), foreign, 0o644); err != nil {
		t.Fatal(err)
	}
	result, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := Render(dir, result); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, ResultFile)); string(got) != string(foreign) {
		t.Errorf("got %s, want it untouched", got)
	}
}

func TestWhatIsNoResultIsSaidInOneSentence(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"nothing at all", ``, "ends too early, at byte 0 of 0"},
		{"cut off", `{"schema":1,"cells":[`, "ends too early, at byte 21 of 21"},
		{"a comma too many", `{"schema":1,,}`, "malformed JSON at byte 13 of 14"},
		{"something after it", `{"schema":1} x`, "malformed JSON at byte 14 of 14"},
		{"another JSON", `{"name":"x"}`, `not a result of queuelab`},
		{"null", `null`, `not a result of queuelab`},
		{"schema 0", `{"schema":0}`, `not a result of queuelab`},
		{"a newer schema", `{"schema":2,"cells":"all new"}`, "schema 2, and this queuelab knows up to 1"},
		{"a word for a number", `{"schema":1,"cells":[{"trials":"ten"}]}`, `"cells.trials" does not fit at byte 36 of 39`},
		{"a schema of words", `{"schema":"one"}`, `"schema" does not fit`},
		{"a list", `[1]`, "does not fit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.json")
			if err := os.WriteFile(path, []byte(c.data), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := Read(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, c.want)
			}
		})
	}
	if _, err := Read(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent: got %v, want ErrNotExist", err)
	}
}

func TestUnknownFieldsAreIgnored(t *testing.T) {
	got, err := Decode([]byte(`{"schema":1,"later":{},"cells":[{"backend":"kafka","later":[1]}]}`))
	if err != nil || len(got.Cells) != 1 || got.Cells[0].Backend != "kafka" {
		t.Errorf("got %+v, %v, want the kafka cell", got, err)
	}
}

// FuzzRead holds that whatever can be read can be shown, and that its JSON is
// the same result again.
func FuzzRead(f *testing.F) {
	for _, c := range append(hostile().Cells, sample().Cells[:7]...) {
		data, err := json.Marshal(normal(trial.Result{Cells: []trial.Cell{c}}))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"schema":1,"cells":[{"test":"sale","sale":{"stock":-1,"sold":9223372036854775807}},{"test":"throughput","ratePerSecond":1e308}]}`))
	f.Add([]byte(`{"schema":1,"cells":[{"test":"latency","latencyMicros":{"endToEnd":{"p50":-9223372036854775808,"n":1}},"verdict":"as expected"}]}`))
	full := sampleFull()
	for _, i := range []int{0, 1, 2, 5, 98, 99, 100, 101, 102, 103} {
		one := full
		one.Cells = full.Cells[i : i+1]
		data, err := json.Marshal(normal(one))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"schema":1,"run":{"floor":{},"host":{"cpuPressure":{},"noiseMicros":{}}},"cells":[{"test":"slo","slo":{"promise":"p99<1ns","highestRate":-1,"curve":[{},{"offered":1e308,"latencyMicros":{"fromSend":{}}}]}},{"test":"scaling-batch","scaling":[{},{"value":-3,"rate":{"n":1,"median":-5}},{"value":2,"rate":{"n":9,"median":1e308,"high":1e308}}]}]}`))
	f.Add([]byte(`{"schema":1,"cells":[{"test":"latency","verdict":"as expected","latencyMicros":{"endToEnd":{"n":1000,"p99":5}},"curve":[{"q":-1},{"q":2},{"q":0.5,"endToEnd":-9},{"q":0.9,"endToEnd":9223372036854775807},{"q":0.99}],"spread":{"endToEnd.p99":{"n":9,"low":7,"high":3}},"runs":[{},{"sale":{}}],"loss":{"trials":-1,"high":9}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode(data)
		if err != nil {
			return
		}
		written, err := json.Marshal(normal(r))
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := Decode(written)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if diff := cmp.Diff(normal(r), again); diff != "" {
			t.Fatalf("it changed (-want +got):\n%s", diff)
		}
		if err := errors.Join(Table(io.Discard, r, false, 120), Markdown(io.Discard, r), HTML(io.Discard, r), CSV(io.Discard, r)); err != nil {
			t.Fatal(err)
		}
		ReadmeTableZh(r)
	})
}
