package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/trial"
)

func compared(t *testing.T, a, b Side, o Options) Comparison {
	t.Helper()
	c, err := Compare(a, b, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sides are two runs of one setting, half an hour apart.
func sides(a, b trial.Cell) (Side, Side) {
	return Of("A", resultOf("a", monday, a)), Of("B", resultOf("b", monday.Add(30*time.Minute), b))
}

func TestMoreIsBetterOnlyForRates(t *testing.T) {
	low, high := []float64{100, 101, 102, 103, 104, 105}, []float64{200, 201, 202, 203, 204, 205}
	a, b := sides(cellOf("s", trial.TestThroughput, rates(low)...), cellOf("s", trial.TestThroughput, rates(high)...))
	for name, c := range map[string]struct {
		a, b Side
		want string
	}{"more a second": {a, b, Better}, "fewer a second": {b, a, Worse}} {
		if got := rowOf(compared(t, c.a, c.b, Options{}), "ratePerSecond"); got.Verdict != c.want {
			t.Errorf("%s: got %q, want %q", name, got.Verdict, c.want)
		}
	}
	a, b = sides(cellOf("s", trial.TestLatency, latencies(low)...), cellOf("s", trial.TestLatency, latencies(high)...))
	c := compared(t, a, b, Options{})
	if got := rowOf(c, "endToEnd.p50"); got.Verdict != Worse || got.Percent.Value < 95 || got.Test != testMannWhitney {
		t.Errorf("got %+v, want it worse by about 98 %%", got)
	}
	if got := rowOf(c, "ratePerSecond"); got.Verdict != "no such row" {
		t.Errorf("got %+v, want no row for the rate that was offered", got)
	}
	if got := rowOf(compared(t, b, a, Options{}), "endToEnd.p50"); got.Verdict != Better {
		t.Errorf("got %q, want it better the other way round", got.Verdict)
	}
}

func TestTooFewTrialsSaySoWhateverTheyHold(t *testing.T) {
	a, b := sides(cellOf("s", trial.TestLatency, latencies([]float64{100, 101, 102})...), cellOf("s", trial.TestLatency, latencies([]float64{900, 901, 902})...))
	c := compared(t, a, b, Options{})
	r := rowOf(c, "endToEnd.p50")
	if r.Verdict != TooFew || !strings.Contains(r.Note, "0.1") || c.Tested != 0 {
		t.Errorf("got %q (%s), %d tested, want too few with the least p of 0.1", r.Verdict, r.Note, c.Tested)
	}
	if r = rowOf(compared(t, a, b, Options{Alpha: 0.1}), "endToEnd.p50"); r.Verdict != Worse {
		t.Errorf("got %q at an alpha of 0.1, want it worse", r.Verdict)
	}
}

func TestAnOldResultHasNothingToTest(t *testing.T) {
	old := cellOf("s", trial.TestLatency)
	old.Runs, old.Trials, old.Valid, old.Load = nil, 1, 1, nil
	old.LatencyMicros = latencies([]float64{100})[0].LatencyMicros
	current := cellOf("s", trial.TestLatency, latencies([]float64{200, 201, 202})...)
	a, b := sides(old, current)
	c := compared(t, a, b, Options{})
	r := rowOf(c, "endToEnd.p50")
	if r.Verdict != Untested || r.A.Median != 100 || r.A.N != 0 || r.B.Median != 201 || r.Percent.Value != 101 || r.P != nil {
		t.Errorf("got %+v, want the medians and no test", r)
	}
	if c.Refused {
		t.Errorf("got refused for %v: what an old result does not record is no difference", c.Differences)
	}
	a.Results[0].Cells[0].Verdict, a.Results[0].Cells[0].Note = trial.VerdictSaturated, "offered 1000/s, sent 300/s"
	c = compared(t, a, b, Options{})
	if r := rowOf(c, "endToEnd.p50"); r.Verdict != "no such row" || !strings.Contains(strings.Join(c.Cells[0].Notes, ""), "offered 1000/s, sent 300/s") {
		t.Errorf("got %+v and %q, want no latency of a load that was not held", r, c.Cells[0].Notes)
	}
}

func TestLossIsComparedByTheTrial(t *testing.T) {
	crash := func(lossy, of int) trial.Cell {
		c := cellOf("s", trial.TestCrash, crashes(lossy, of)...)
		c.Fault = trial.FaultBrokerKill
		return c
	}
	for name, c := range map[string]struct {
		a, b    trial.Cell
		verdict string
	}{
		"all against none":     {crash(0, 10), crash(10, 10), Worse},
		"none against all":     {crash(10, 10), crash(0, 10), Better},
		"none against none":    {crash(0, 10), crash(0, 10), Same},
		"few trials":           {crash(0, 3), crash(3, 3), TooFew},
		"one of ten, or three": {crash(1, 10), crash(3, 10), Same},
	} {
		a, b := sides(c.a, c.b)
		got := compared(t, a, b, Options{})
		r := rowOf(got, Lossy)
		if r.Verdict != c.verdict || r.Test != testFisher {
			t.Errorf("%s: got %+v, want %q", name, r, c.verdict)
		}
		if want := "redis-streams/s/crash/broker-kill"; got.Cells[0].Name != want {
			t.Errorf("got the name %q, want %q", got.Cells[0].Name, want)
		}
	}
	a, b := sides(crash(0, 10), crash(0, 10))
	if r := rowOf(compared(t, a, b, Options{}), Lossy); !strings.Contains(r.Note, "0 of 10 excludes more than 26 %") {
		t.Errorf("got %q, want what none in ten excludes", r.Note)
	}
}

func TestTrialsThatSayNothingAreLeftOutAndNamed(t *testing.T) {
	runs := latencies([]float64{100, 101, 102, 103, 104, 105, 9000, 1, 9000})
	runs[6].Invalid = []string{"did not drain"}
	runs[7].Saturated, runs[7].Accepted = "9000 of 10000 messages were not accepted", 1000
	runs[8].Saturated = "offered 1000/s, sent 300/s"
	a, b := sides(cellOf("s", trial.TestLatency, runs...), cellOf("s", trial.TestLatency, latencies([]float64{100, 101, 102, 103, 104, 105, 9000})...))
	c := compared(t, a, b, Options{})
	if r := rowOf(c, "endToEnd.p50"); r.Verdict != Same || r.A.N != 7 || *r.P != 1 {
		t.Errorf("got %+v, want seven equal trials: what was late counts, what was refused does not", r)
	}
	if got := rowOf(c, Saturated); got.A.Median != 2.0/8 {
		t.Errorf("got %+v, want two of eight saturated", got)
	}
	notes := strings.Join(c.Cells[0].Notes, "; ")
	for _, want := range []string{"A: 2 of 9 trials are left out: invalid: did not drain, and others", "A: 1 of 9 trials did not hold the load, and count as they are: offered 1000/s, sent 300/s"} {
		if !strings.Contains(notes, want) {
			t.Errorf("got the notes %q, want %q in them", notes, want)
		}
	}
}

func TestPairsAreTheTrialsOfOneRound(t *testing.T) {
	// The machine gets ever slower; within the pairs B is 5 % slower.
	var x, y []float64
	for i := range 12 {
		pace := 1000 + 150*float64(i)
		x, y = append(x, pace), append(y, 1.05*pace)
	}
	runsA, runsB := latencies(x), latencies(y)
	runsB[3].Invalid = []string{"did not drain"}
	both := resultOf("ab", monday, cellOf("s#A", trial.TestLatency, runsA...), cellOf("s#B", trial.TestLatency, runsB...))
	a, b := Of("R", both).Choose("redis-streams/s#A"), Of("R", both).Choose("redis-streams/s#B")
	c := compared(t, a, b, Options{})
	r := rowOf(c, "endToEnd.p50")
	if !c.Paired || r.Test != testSignedRank || r.Verdict != Worse || r.A.N != 11 || r.B.N != 11 {
		t.Errorf("got %+v, want eleven pairs that show it worse", r)
	}
	if r.Percent.Low < 4.9 || r.Percent.High > 5.1 {
		t.Errorf("got %+v, want 5 %% in every pair", r.Percent)
	}
	if len(c.Warnings) != 0 {
		t.Errorf("got the warnings %q, want none for what was interleaved", c.Warnings)
	}
	unpaired := Of("R", resultOf("other", monday, both.Cells[1])).Choose("redis-streams/s#B")
	if r := rowOf(compared(t, a, unpaired, Options{}), "endToEnd.p50"); r.Verdict != Same {
		t.Errorf("got %q without pairs, want the pace of the machine to hide it", r.Verdict)
	}
}

func TestValuesOfNothingHaveNoPerCent(t *testing.T) {
	zero, some := make([]float64, 8), []float64{3, 4, 3, 5, 4, 3, 4, 5}
	a, b := sides(cellOf("s", trial.TestLatency, latencies(zero)...), cellOf("s", trial.TestLatency, latencies(some)...))
	c := compared(t, a, b, Options{})
	r := rowOf(c, "endToEnd.p50")
	if r.Percent != nil || r.Difference.Value != 4 || r.Verdict != Worse {
		t.Errorf("got %+v, want a difference of 4 µs and no per cent", r)
	}
	if _, err := json.Marshal(c); err != nil {
		t.Errorf("it does not become JSON: %v", err)
	}
}

func TestConditionsThatDiffer(t *testing.T) {
	cell := func(change func(*trial.Cell)) trial.Cell {
		c := cellOf("s", trial.TestLatency, latencies([]float64{100, 101, 102, 103, 104, 105})...)
		change(&c)
		return c
	}
	for name, c := range map[string]struct {
		run          func(*trial.Run)
		cell         func(*trial.Cell)
		what         string // "": nothing is said
		incomparable bool
	}{
		"profile":          {cell: func(c *trial.Cell) { c.Profile = trial.ProfileMemory }, what: "profile: disk-sync | memory", incomparable: true},
		"load shape":       {cell: func(c *trial.Cell) { c.Load.Shape = "poisson:1000" }, what: "load shape: constant:1000 | poisson:1000", incomparable: true},
		"offered rate":     {cell: func(c *trial.Cell) { c.RatePerSecond = 500 }, what: "offered rate: 1000 | 500", incomparable: true},
		"payload":          {cell: func(c *trial.Cell) { c.PayloadBytes = 1000 }, what: "payload in bytes: 100 | 1000", incomparable: true},
		"consumers":        {cell: func(c *trial.Cell) { c.Consumers = 4 }, what: "consumers: 1 | 4", incomparable: true},
		"stand-in":         {cell: func(c *trial.Cell) { c.Broker.Emulated = true }, what: "emulated: false | true", incomparable: true},
		"cores":            {run: func(r *trial.Run) { r.Host.Cores = 8 }, what: "cores: 2 | 8", incomparable: true},
		"processor":        {run: func(r *trial.Run) { r.Host.CPU = "Other CPU" }, what: "processor: Example CPU 2.6 GHz | Other CPU", incomparable: true},
		"suite":            {run: func(r *trial.Run) { r.Suite = "quick" }, what: "suite: full | quick", incomparable: true},
		"prefetch":         {cell: func(c *trial.Cell) { c.Prefetch = 64 }, what: "prefetch: 0 | 64"},
		"broker's version": {cell: func(c *trial.Cell) { c.Broker.Version = "8.4" }, what: "redis version: 7.0.15 | 8.4"},
		"commit":           {run: func(r *trial.Run) { r.Commit = "7ea03a8" }, what: "commit: 0215ccc | 7ea03a8"},
		"kernel":           {run: func(r *trial.Run) { r.Host.Kernel = "Linux 7.0" }, what: "kernel: Linux 6.18.44 | Linux 7.0"},
		"a loaded machine": {run: func(r *trial.Run) { r.Host.Load1 = 4 }, what: "load before: 0.3 | 4"},
		"a little load":    {run: func(r *trial.Run) { r.Host.Load1 = 0.6 }},
		"a setting of the broker": {cell: func(c *trial.Cell) {
			c.EffectiveSettings = map[string]string{"appendonly": "yes", "appendfsync": "no", "url": "redis+streams://127.0.0.1:1/0?queue=x&claim=2s"}
		}, what: "effective appendfsync: s | no"},
		"a knob of the client": {cell: func(c *trial.Cell) {
			c.EffectiveSettings = map[string]string{"appendonly": "yes", "appendfsync": "s", "url": "redis+streams://127.0.0.1:13435/0?queue=lab8&claim=9s"}
		}, what: "effective url.claim: 2s | 9s"},
		"port and queue": {cell: func(c *trial.Cell) {
			c.EffectiveSettings = map[string]string{"appendonly": "yes", "appendfsync": "s", "url": "redis+streams://127.0.0.1:1/0?queue=other&claim=2s"}
		}},
		"seed":                {cell: func(c *trial.Cell) { c.Seed = 99 }},
		"profile not written": {cell: func(c *trial.Cell) { c.Profile = "" }, what: "profile: disk-sync | not recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			x, y := resultOf("a", monday, cell(func(*trial.Cell) {})), resultOf("b", monday, cell(func(*trial.Cell) {}))
			if c.cell != nil {
				c.cell(&y.Cells[0])
			}
			if c.run != nil {
				c.run(&y.Run)
			}
			got := compared(t, Of("A", x), Of("B", y), Options{})
			switch {
			case c.what == "" && len(got.Differences) > 0:
				t.Errorf("got %v, want nothing", got.Differences)
			case c.what == "":
			case len(got.Differences) != 1 || !strings.HasPrefix(got.Differences[0].String(), c.what) || got.Differences[0].Incomparable != c.incomparable:
				t.Errorf("got %v, want %q", got.Differences, c.what)
			}
			if got.Refused != c.incomparable || got.Refused != (len(got.Cells) == 0) {
				t.Errorf("got refused %v with %d cells", got.Refused, len(got.Cells))
			}
			forced := compared(t, Of("A", x), Of("B", y), Options{Force: true})
			if forced.Refused || len(forced.Cells) != 1 {
				t.Errorf("got refused %v although forced", forced.Refused)
			}
			if said := strings.Contains(strings.Join(forced.Warnings, ""), "forced"); said != c.incomparable {
				t.Errorf("got the warnings %q", forced.Warnings)
			}
		})
	}
}

func TestRunsOfDifferentHoursAreComparedWithAWarning(t *testing.T) {
	cell := cellOf("s", trial.TestThroughput, rates([]float64{100, 101, 102, 103, 104, 105})...)
	at := func(id string, d time.Duration) trial.Result { return resultOf(id, monday.Add(d), cell) }
	for name, c := range map[string]struct {
		a, b Side
		want string
	}{
		"hours apart":        {Of("A", at("a", 0)), Of("B", at("b", 5*time.Hour)), "5h0m apart"},
		"one after another":  {Of("A", at("a", 0)), Of("B", at("b", 20*time.Minute)), "not interleaved"},
		"sets in turns":      {Of("A", at("a", 0), at("c", 2*time.Hour)), Of("B", at("b", time.Hour), at("d", 3*time.Hour)), "not interleaved"},
		"a set, not in turn": {Of("A", at("a", 0), at("c", 0)), Of("B", at("b", 0), at("d", 3*time.Hour)), "3h0m apart"},
		"with itself":        {Of("A", at("a", 0)), Of("A", at("a", 0)), "compared with itself"},
	} {
		got := compared(t, c.a, c.b, Options{})
		if all := strings.Join(got.Warnings, "; "); !strings.Contains(all, c.want) || len(got.Warnings) != 1 {
			t.Errorf("%s: got %q, want one with %q", name, got.Warnings, c.want)
		}
	}
	cut := at("a", 0)
	cut.Run.Complete = false
	if got := compared(t, Of("A", cut), Of("B", at("b", 0)), Options{}); !strings.Contains(strings.Join(got.Warnings, ""), "A was interrupted") {
		t.Errorf("got %q, want it to say that A is not whole", got.Warnings)
	}
}

func TestSetsArePooledAndMustAgree(t *testing.T) {
	one := func(id string, xs ...float64) trial.Result {
		return resultOf(id, monday, cellOf("s", trial.TestThroughput, rates(xs)...))
	}
	a, b := Of("A", one("a", 100, 101, 102), one("c", 103, 104, 105)), Of("B", one("b", 200, 201, 202), one("d", 203, 204, 205))
	if r := rowOf(compared(t, a, b, Options{}), "ratePerSecond"); r.A.N != 6 || r.B.N != 6 || r.Verdict != Better {
		t.Errorf("got %+v, want six and six trials", r)
	}
	mixed := one("d", 203, 204, 205)
	mixed.Run.Host.Cores = 8
	c := compared(t, a, Of("B", one("b", 200), mixed), Options{})
	if !c.Refused || !strings.Contains(c.Differences[0].String(), "cores: 2 | 2 and 8") {
		t.Errorf("got %v, want a refusal of the set that does not agree", c.Differences)
	}
}

func TestASetOfOldResultsHasNoMedian(t *testing.T) {
	old := func(id string) trial.Result {
		c := cellOf("s", trial.TestThroughput)
		c.Valid = 1
		return resultOf(id, monday, c)
	}
	c := compared(t, Of("A", old("a"), old("c")), Of("B", old("b")), Options{})
	if len(c.Cells[0].Rows) != 0 {
		t.Errorf("got %+v, want no row", c.Cells[0].Rows)
	}
}

func TestScaledRatesAreComparedValueByValue(t *testing.T) {
	scaling := func(factor float64) trial.Cell {
		c := cellOf("s", trial.TestScalingConsumers, rates([]float64{1, 2, 3, 4, 5, 6})...)
		c.LoopModel = "closed"
		for _, v := range []int{1, 4} {
			p := trial.ScalePoint{Value: v}
			for i := range 6 {
				p.Rates = append(p.Rates, factor*float64(1000*v+i))
			}
			c.Scaling = append(c.Scaling, p)
		}
		return c
	}
	a, b := sides(scaling(1), scaling(2))
	c := compared(t, a, b, Options{})
	for _, metric := range []string{"ratePerSecond@1", "ratePerSecond@4"} {
		if r := rowOf(c, metric); r.Verdict != Better || math.Abs(r.Percent.Value-100) > 1e-9 {
			t.Errorf("%s: got %+v, want twice as many", metric, r)
		}
	}
	if r := rowOf(c, "ratePerSecond"); r.Verdict != "no such row" {
		t.Errorf("got %+v, want no rate without its value", r)
	}
}

func TestWhatOneSideHasAloneIsNamed(t *testing.T) {
	cell := func(setting string) trial.Cell {
		return cellOf(setting, trial.TestThroughput, rates([]float64{1, 2, 3})...)
	}
	c := compared(t, Of("A", resultOf("a", monday, cell("x"), cell("y"))), Of("B", resultOf("b", monday, cell("y"), cell("z"))), Options{})
	if diff := cmp.Diff([]string{"redis-streams/x/throughput", "redis-streams/z/throughput"}, append(c.OnlyInA, c.OnlyInB...)); diff != "" {
		t.Error(diff)
	}
	_, err := Compare(Of("A", resultOf("a", monday, cell("x"))), Of("B", resultOf("b", monday, cell("z"))), Options{})
	if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), "redis-streams/x/throughput") {
		t.Errorf("got %v, want what each side has", err)
	}
}

func TestTwoSettingsStandAgainstEachOther(t *testing.T) {
	x := cellOf("aof-always", trial.TestThroughput, rates([]float64{100, 101, 102, 103, 104, 105})...)
	y := cellOf("quorum", trial.TestThroughput, rates([]float64{50, 51, 52, 53, 54, 55})...)
	y.Backend, y.Broker, y.EffectiveSettings = "rabbitmq", trial.Broker{Name: "rabbitmq", Version: "3.10.8"}, map[string]string{"cluster_name": "lab1", "url": "amqp://h/?type=quorum"}
	both := Of("R", resultOf("r", monday, x, y))
	c := compared(t, both.Choose("redis-streams/aof-always"), both.Choose("rabbitmq/quorum"), Options{})
	if r := rowOf(c, "ratePerSecond"); r.Verdict != Worse || c.Cells[0].A != "redis-streams/aof-always" || c.Cells[0].B != "rabbitmq/quorum" {
		t.Errorf("got %+v", c.Cells)
	}
	for _, d := range c.Differences {
		if !strings.Contains(d.What, "url.") {
			t.Errorf("got %v, want no setting that only one broker has", d)
		}
	}
	if _, err := Compare(both.Choose("rabbitmq/quorum"), both, Options{}); err == nil {
		t.Error("got no error for a setting on one side only")
	}
	if _, err := Compare(both.Choose("rabbitmq/classic"), both.Choose("rabbitmq/quorum"), Options{}); err == nil || !strings.Contains(err.Error(), "it has redis-streams/aof-always, rabbitmq/quorum") {
		t.Errorf("got %v, want the settings that there are", err)
	}
}

func TestLoadReadsFilesDirectoriesSetsAndSelectors(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, r trial.Result) string {
		t.Helper()
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name, "result.json")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Dir(path)
	}
	cell := cellOf("s", trial.TestThroughput, rates([]float64{1, 2, 3})...)
	one, two, again := put("one", resultOf("1", monday, cell)), put("two,b:c", resultOf("2", monday, cell)), put("again", resultOf("1", monday, cell))
	empty := put("empty", resultOf("e", monday))
	foreign := filepath.Join(dir, "foreign.json")
	if err := os.WriteFile(foreign, []byte(`{"name": "something else"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(one, "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(dir, "cut.json")
	if err := os.WriteFile(cut, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]struct {
		results int
		setting string
		err     string
	}{
		one:                               {results: 1},
		filepath.Join(one, "result.json"): {results: 1},
		two:                               {results: 1},
		one + ":redis-streams/s":          {results: 1, setting: "redis-streams/s"},
		two + ":redis-streams/s":          {results: 1, setting: "redis-streams/s"},
		one + ":redis-streams/t":          {err: `no setting "redis-streams/t": it has redis-streams/s`},
		one + "," + again:                 {err: "are the same run"},
		one + ",":                         {err: "empty name"},
		empty:                             {err: "no measured cell"},
		foreign:                           {err: "not a result of queuelab"},
		cut:                               {err: "ends too early, at byte"},
		filepath.Join(dir, "none"):        {err: "no such file"},
	} {
		s, err := Load(given)
		switch {
		case want.err != "" && (err == nil || !strings.Contains(err.Error(), want.err)):
			t.Errorf("%s: got %v, want %q", given, err, want.err)
		case want.err == "" && (err != nil || len(s.Results) != want.results || s.Setting != want.setting):
			t.Errorf("%s: got %d results, setting %q, %v", given, len(s.Results), s.Setting, err)
		}
	}
}

func TestTextSaysItAll(t *testing.T) {
	x := resultOf("a", monday,
		cellOf("s", trial.TestLatency, latencies([]float64{1000, 1010, 1020, 990, 980, 1005})...),
		cellOf("s", trial.TestThroughput, rates([]float64{10_000, 20_000, 30_000, 15_000, 40_000, 12_000})...))
	y := resultOf("b", monday.Add(4*time.Hour),
		cellOf("s", trial.TestLatency, latencies([]float64{1500, 1510, 1520, 1490, 1480, 1505})...),
		cellOf("s", trial.TestThroughput, rates([]float64{10_001, 20_001, 30_001, 15_001, 40_001, 12_001})...))
	y.Run.Commit = "7ea03a8"
	c := compared(t, Of("before", x), Of("after", y), Options{})
	ten := 10.0
	if err := c.Judge([]Budget{{Cells: "*/latency", Metric: "endToEnd.p99", WorsePercent: &ten}}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Text(&out, c, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"A: before (2026-11-30 09:00)", "commit: 0215ccc | 7ea03a8", "Warning: the runs started 4h0m apart", "redis-streams/s/latency",
		"endToEnd.p50", "1 ms", "1.5 ms", "+49", "- worse", "no difference shown (noisy)", "4 differences in 5 tests at alpha 0.05", "EXCEEDED: redis-streams/s/latency endToEnd.p99, at most 10 % worse",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got no %q in:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b[") {
		t.Error("got colours although there were to be none")
	}
	y.Run.Host.Cores = 16
	out.Reset()
	if err := Text(&out, compared(t, Of("before", x), Of("after", y), Options{}), true); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "cores: 2 | 16") || !strings.Contains(out.String(), "--force") || strings.Contains(out.String(), "endToEnd.p50") {
		t.Errorf("got no refusal:\n%s", out.String())
	}
}

func TestNumbersAreShownWithWhatMatters(t *testing.T) {
	for _, c := range []struct {
		v          float64
		unit, want string
	}{
		{0, "µs", "0 µs"}, {7, "µs", "7 µs"}, {999, "µs", "999 µs"}, {1234, "µs", "1.23 ms"}, {2_500_000, "µs", "2.5 s"},
		{310, "ms", "310 ms"}, {4210, "ms", "4.21 s"}, {812.4, "/s", "812/s"}, {45_678, "/s", "45.7 k/s"}, {1.2e6, "/s", "1.2 M/s"},
		{0.25, "of trials", "25 %"}, {12.345, "CPU s/million", "12.3 s"}, {0.0312, "CPU s/million", "0.031 s"},
	} {
		if got := show(c.v, c.unit); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
