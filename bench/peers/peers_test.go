package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/broker/brokertest"
	"queuelab/compose"
)

func TestEveryRowSaysWhatIsCompared(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range comparisons() {
		if c.theirs == "" || c.ours == "" || c.guarantee == "" || c.timed == "" {
			t.Errorf("%s: got %+v, want the settings of both sides, the guarantee and what is timed", c, c)
		}
		if target(c.backend, c.client, c.direction) == 0 {
			t.Errorf("%s has no target", c)
		}
		if (c.toolSide == nil) == (c.bare == "") {
			t.Errorf("%s: got a tool and a bare loop, or neither", c)
		}
		if !strings.Contains(c.ours, preset) || !strings.Contains(c.query, preset) {
			t.Errorf("%s: got %q and %q, want the backend with %s", c, c.ours, c.query, preset)
		}
		row := strings.Join([]string{c.backend, c.client, c.tool, c.direction, c.guarantee, c.theirs}, "/")
		if seen[row] {
			t.Errorf("%s is there twice", row)
		}
		seen[row] = true
	}
	for _, c := range latencies() {
		if c.bare == "" || c.theirs == "" || c.ours == "" || c.count <= c.warm {
			t.Errorf("%s: got %+v, want a bare loop, the settings of both, and messages after the warm-up", c, c)
		}
	}
}

func TestBackendsAreChosenByName(t *testing.T) {
	rows, err := Options{Backends: "kafka, redis-pubsub", Pairs: 1, Scale: 1}.rows()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range rows {
		if !slices.Contains(got, c.backend) {
			got = append(got, c.backend)
		}
	}
	if diff := cmp.Diff([]string{"redis-pubsub", "kafka"}, got); diff != "" {
		t.Errorf("backends (-want +got):\n%s", diff)
	}
	for name, o := range map[string]Options{
		"memory":   {Backends: "memory", Pairs: 1, Scale: 1},
		"pairs":    {Pairs: 0, Scale: 1},
		"scale of": {Pairs: 1, Scale: -1},
	} {
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: got %v, want an error that names %q", o, err, name)
		}
	}
}

func TestScaledRowsKeepWholeBatches(t *testing.T) {
	for _, by := range []float64{.001, .013, 1, 7.3} {
		for _, c := range append(comparisons(), latencies()...) {
			s := c.scaled(by)
			if c.count > 0 && (s.count < 200 || s.count%100 != 0 || s.warm >= s.count) {
				t.Errorf("%s by %v: got %d messages, %d of them warm-up", c, by, s.count, s.warm)
			}
			if by == 1 && (s.count != c.count || s.warm != c.warm || s.length != c.length) {
				t.Errorf("%s by 1: got %d, %d, %v, want %d, %d, %v", c, s.count, s.warm, s.length, c.count, c.warm, c.length)
			}
		}
	}
}

func TestARowIsTheMedianOfItsPairs(t *testing.T) {
	c := comparison{backend: "kafka", client: "kafka-go", direction: Publish}
	pairOf := func(tool, ours float64) pair { return pair{tool: outcome{Rate: tool}, ours: outcome{Rate: ours}} }
	// The median ratio is 0.5, which is not that of the median rates.
	r := rateRow(c, []pair{pairOf(100, 90), pairOf(400, 200), pairOf(200, 20)})
	if r.ToolRate != 200 || r.OursRate != 90 || r.Ratio != .5 || r.Target != .5 || !r.Reached {
		t.Errorf("got %+v, want medians of 200, 90 and 0.5, which reach the target", r)
	}
	if r = rateRow(c, []pair{pairOf(100, 49), pairOf(100, 50)}); r.Ratio != .495 || r.Reached {
		t.Errorf("got %+v, want 0.495, which misses the target", r)
	}
	micros := func(raw, ours float64) pair {
		return pair{tool: outcome{Latency: Micros{P50: raw}}, ours: outcome{Latency: Micros{P50: ours}}}
	}
	c.direction = latencyDirection
	l := latencyRow(c, []pair{micros(100, 110), micros(100, 111), micros(100, 90)})
	if l.RawP50Micros != 100 || l.OursP50Micros != 110 || l.Ratio != 1.1 || !l.Reached {
		t.Errorf("got %+v, want 100, 110 and 1.1, which is within the target", l)
	}
	if l = latencyRow(c, []pair{micros(100, 111)}); l.Reached {
		t.Errorf("got %+v, want it to miss the target", l)
	}
	if l = latencyRow(c, []pair{micros(20_000, 111)}); l.Reached || !l.Saturated {
		t.Errorf("got %+v, want it not judged: nothing was kept up with", l)
	}
}

// rows by these names are what other programs read.
func TestTheFileHasTheFieldsThatWerePromised(t *testing.T) {
	dir := t.TempDir()
	if err := Claim(dir, false); err != nil {
		t.Fatal(err)
	}
	want := Result{
		Rows:    []Row{{Backend: "kafka", Client: "kafka-go", Tool: "x", Guarantee: "g", Direction: Consume, ToolRate: 2, OursRate: 1, Ratio: .5}},
		Latency: []LatencyRow{{Backend: "kafka", Client: "kafka-go", RawP50Micros: 1, OursP50Micros: 2, Ratio: 2}},
	}
	if err := Write(dir, want); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Rows, Latency []map[string]any }
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	for field, value := range map[string]any{"backend": "kafka", "client": "kafka-go", "tool": "x", "guarantee": "g",
		"direction": "consume", "toolRate": 2., "oursRate": 1., "ratio": .5} {
		if got.Rows[0][field] != value {
			t.Errorf("rows: got %s %v, want %v", field, got.Rows[0][field], value)
		}
	}
	for field, value := range map[string]any{"backend": "kafka", "client": "kafka-go", "rawP50Micros": 1., "oursP50Micros": 2., "ratio": 2.} {
		if got.Latency[0][field] != value {
			t.Errorf("latency: got %s %v, want %v", field, got.Latency[0][field], value)
		}
	}
	if err := Claim(dir, false); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "--force") {
		t.Errorf("a second claim: got %v, want ErrExists and the remedy", err)
	}
	if err := Claim(dir, true); err != nil {
		t.Errorf("a forced claim: got %v, want none", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestTheTableSaysWhatMissedFailedAndIsMissing(t *testing.T) {
	r := Result{
		Rows: []Row{
			{Backend: "kafka", Client: "kafka-go", Tool: "T", Direction: Publish, ToolRate: 1234567, OursRate: 12, Ratio: .25, Target: .5, Pairs: []Pair{{Ratio: .2}, {Ratio: .3}}},
			{Backend: "redis-list", Client: "go-redis", Tool: "T", Direction: Publish, Ratio: 2, Target: 1, Reached: true, Pairs: []Pair{{Ratio: 2}}},
		},
		Latency: []LatencyRow{{Backend: "rabbitmq", Client: "amqp091-go", RawP50Micros: 200, OursP50Micros: 300, Ratio: 1.5, Target: 1.1, Pairs: []LatencyPair{{Ratio: 1.5}}},
			{Backend: "kafka", Saturated: true, Pairs: []LatencyPair{{}}}},
		Skipped: []Skipped{{Backend: "rabbitmq", Tool: "PerfTest", Reason: "its jars are not here; `make peers` fetches them"}},
		Failed:  []Skipped{{Backend: "redis-streams", Tool: "redis-benchmark", Reason: "exit status 1; it wrote:\n  a long story"}},
		Note:    note(Options{Pairs: 1, Scale: .5}),
	}
	var plain, coloured bytes.Buffer
	if err := errors.Join(Table(&plain, r, false, 100), Table(&coloured, r, true, 100)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1,234,567", "0.25", "2: 0.20–0.30", "≥ 0.50", "✗ missed", "✓ reached", "≤ 1.10", "1.50",
		"skipped rabbitmq", "make peers", "failed redis-streams", "exit status 1", "INTERRUPTED", "? bare loop saturated", "says little", "shorter"} {
		if !strings.Contains(plain.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, plain.String())
		}
	}
	for _, width := range []int{140, 160} {
		var b bytes.Buffer
		r.Rows[0].Guarantee = strings.Repeat("a promise ", 8)
		if err := Table(&b, r, true, width); err != nil || widest(b.String()) > width {
			t.Errorf("got %v and a line of %d columns, want at most %d:\n%s", err, widest(b.String()), width, b.String())
		}
	}
	if strings.Contains(plain.String(), "\x1b") || !strings.Contains(coloured.String(), "\x1b") {
		t.Error("got colours where there should be none, or none where there should be some")
	}
}

func TestWhatIsMissingIsSkippedWithItsRemedy(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("JAVA_HOME", "")
	t.Setenv("QUEUELAB_PERFTEST_LIBS", t.TempDir())
	missing := findTools().missing
	for tool, remedy := range map[string]string{
		redisBenchmark: "make setup", kafkaProducer: "make setup", kafkaConsumer: "make setup", perfTest: "make setup",
	} {
		if !strings.Contains(missing[tool], remedy) {
			t.Errorf("%s: got %q, want the remedy %q", tool, missing[tool], remedy)
		}
	}
	if _, err := lookPerfTest(); err == nil || !strings.Contains(err.Error(), "setup.sh --peers") {
		t.Errorf("PerfTest's jars: got %v, want an error with the remedy", err)
	}
}

func TestSetUpFetchesThePerfTestThatIsLookedFor(t *testing.T) {
	script, err := compose.Files.ReadFile("setup.sh")
	if err != nil {
		t.Fatal(err)
	}
	if want := "\nperftest_version=" + perfTestVersion + "\n"; !strings.Contains(string(script), want) {
		t.Errorf("setup.sh does not set %q", want)
	}
}

// need skips the test, or fails it where CI=true, without what its rows need.
func need(t *testing.T, kind string, names ...string) {
	t.Helper()
	brokertest.Need(t, kind)
	missing := findTools().missing
	for _, n := range names {
		if missing[n] != "" {
			brokertest.Lacks(t, missing[n])
		}
	}
}

// small measures a few messages of the rows that are chosen.
func small(t *testing.T, pairs int, backends string, only func(comparison) bool) Result {
	t.Helper()
	kept := 0
	r, err := Measure(t.Context(), Options{Backends: backends, Pairs: pairs, Scale: .01, Say: t.Logf,
		change: func(rows []comparison) []comparison {
			return slices.DeleteFunc(rows, func(c comparison) bool { return only != nil && !only(c) })
		},
		Keep: func(Result) error { kept++; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Failed)+len(r.Skipped) > 0 || !r.Complete || kept != len(r.Rows)+len(r.Latency) || kept == 0 {
		t.Fatalf("got %d rows, %d kept, failed %+v, skipped %+v, complete %v", len(r.Rows)+len(r.Latency), kept, r.Failed, r.Skipped, r.Complete)
	}
	for _, x := range r.Rows {
		if !(x.ToolRate > 0 && x.OursRate > 0 && x.Ratio > 0) || len(x.Pairs) != pairs {
			t.Errorf("got %+v, want rates and %d pairs", x, pairs)
		}
		for i, p := range x.Pairs {
			if p.ToolFirst != (i%2 == 0) || p.Ratio != p.OursRate/p.ToolRate {
				t.Errorf("pair %d: got %+v, want the order to alternate, and ours by the tool's", i, p)
			}
		}
	}
	for _, x := range r.Latency {
		if !(x.RawP50Micros > 0 && x.OursP50Micros > 0 && x.Ratio > 0) || len(x.Pairs) != pairs {
			t.Errorf("got %+v, want latencies and %d pairs", x, pairs)
		}
	}
	for _, tool := range []string{r.Versions["redis"], r.Versions["rabbitmq"], r.Versions["kafka"]} {
		if tool != "" {
			return r
		}
	}
	t.Errorf("got versions %v, want the broker's", r.Versions)
	return r
}

func TestRedisBesideItsToolAndBareLoops(t *testing.T) {
	need(t, "redis", redisBenchmark)
	small(t, 2, "redis-list", nil)
	r := small(t, 1, "redis-streams,redis-pubsub", nil)
	if len(r.Rows) != 6 || len(r.Latency) != 2 {
		t.Errorf("got %d rows and %d latencies, want 6 and 2", len(r.Rows), len(r.Latency))
	}
}

func TestRabbitMQBesidePerfTest(t *testing.T) {
	need(t, "rabbitmq", perfTest)
	small(t, 1, "rabbitmq", func(c comparison) bool {
		return strings.Contains(c.guarantee, "classic queue") && !strings.Contains(c.guarantee, "transient") && !strings.Contains(c.guarantee, "at most once")
	})
}

func TestKafkaBesideItsTools(t *testing.T) {
	need(t, "kafka", kafkaProducer, kafkaConsumer)
	small(t, 1, "kafka", func(c comparison) bool {
		return c.client == "kafka-go" && c.direction != Publish || c.client == "franz-go" && c.direction != Consume && !strings.Contains(c.guarantee, "acks=1")
	})
}

func TestAnInterruptedMeasurementKeepsWhatIsFinished(t *testing.T) {
	need(t, "redis", redisBenchmark)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := Measure(ctx, Options{Backends: "redis-list", Pairs: 1, Scale: .01, Say: t.Logf,
		Keep: func(Result) error { cancel(); return nil }})
	if !errors.Is(err, context.Canceled) || len(r.Rows) != 1 || r.Complete || len(r.Failed) > 0 {
		t.Errorf("got %v, %d rows, complete %v, failed %v, want one row and context.Canceled", err, len(r.Rows), r.Complete, r.Failed)
	}
}

func TestAToolThatFailsDoesNotEndTheOthers(t *testing.T) {
	need(t, "redis", redisBenchmark)
	r, err := Measure(t.Context(), Options{Backends: "redis-list", Pairs: 1, Scale: .01, Say: t.Logf, change: func(rows []comparison) []comparison {
		for i := range rows[:2] {
			rows[i].toolSide = func(tools, where, comparison) process {
				return process{argv: []string{"sh", "-c", "echo broken; exit 7"}, rate: parseRedisBenchmark}
			}
		}
		return rows
	}})
	if err != nil || len(r.Failed) != 2 || len(r.Rows) != 2 || len(r.Latency) != 1 {
		t.Fatalf("got %v, failed %+v, %d rows, want 2 failed and the other 3 measured", err, r.Failed, len(r.Rows))
	}
	if f := r.Failed[0].Reason; !strings.Contains(f, "exit status 7") || !strings.Contains(f, "broken") {
		t.Errorf("got %q, want the tool's end and its words", f)
	}
}
