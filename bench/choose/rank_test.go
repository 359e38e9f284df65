package choose

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/report"
	"queuelab/bench/trial"
)

func of(backend, setting string, c trial.Cell) trial.Cell {
	c.Backend, c.Setting = backend, setting
	return c
}

func TestAPlaceIsAsCertainAsItsTrials(t *testing.T) {
	noisy := latencyCell(1000, 6, 700, 690, 710)
	noisy.Noisy = "jumps about"
	other := latencyCell(2000, 6, 100, 90, 110)
	for name, c := range map[string]struct {
		cells []trial.Cell
		want  []string
	}{
		"apart": {[]trial.Cell{of("rabbitmq", "classic", latencyCell(1000, 6, 900, 800, 990)), of("redis-streams", "aof-always", latencyCell(1000, 6, 500, 400, 600)), of("kafka", "acks-all-flush", latencyCell(1000, 6, 2000, 1500, 3000))},
			[]string{"1–6 redis-streams/aof-always", "2–7 rabbitmq/classic", "3–8 kafka/acks-all-flush"}},
		"overlapping": {[]trial.Cell{of("rabbitmq", "classic", latencyCell(1000, 6, 900, 590, 990)), of("redis-streams", "aof-always", latencyCell(1000, 6, 500, 400, 600))},
			[]string{"1–8 redis-streams/aof-always", "1–8 rabbitmq/classic"}},
		"too few trials": {[]trial.Cell{of("rabbitmq", "classic", latencyCell(1000, 5, 900, 800, 990)), of("redis-streams", "aof-always", latencyCell(1000, 6, 500, 400, 600))},
			[]string{"1–8 redis-streams/aof-always", "1–8 rabbitmq/classic"}},
		"too noisy": {[]trial.Cell{of("rabbitmq", "classic", noisy), of("redis-streams", "aof-always", latencyCell(1000, 6, 500, 400, 600))},
			[]string{"1–8 redis-streams/aof-always", "1–8 rabbitmq/classic"}},
		"under another load": {[]trial.Cell{of("rabbitmq", "classic", other), of("redis-streams", "aof-always", latencyCell(1000, 6, 500, 400, 600))},
			[]string{"1–8 rabbitmq/classic", "1–8 redis-streams/aof-always"}},
	} {
		var got []string
		for _, s := range with(t, c.cells...).ranked(Needs{Loses: NothingOnPowerLoss}, true).Fitting() {
			if s.Speed != nil {
				got = append(got, s.Places()+" "+s.Setting)
			}
			if (s.Unplaced == "") != (s.First == s.Last) {
				t.Errorf("%s: got %+v, want a reason where the place is not certain", name, s)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// Two results, though of one machine, were not measured in turns.
func TestOnlyNumbersOfOneResultArePlaced(t *testing.T) {
	e := with(t, of("rabbitmq", "classic", latencyCell(1000, 6, 900, 800, 990)))
	e.Results = append(e.Results, Source{"another", trial.Result{Schema: 1, Cells: []trial.Cell{as(trial.VerdictAsExpected, of("redis-streams", "aof-always", latencyCell(1000, 6, 500, 400, 600)))}}})
	if best := e.ranked(Needs{Loses: NothingOnPowerLoss}, true).Fitting()[0]; best.Places() != "1–8" || best.Unplaced == "" {
		t.Errorf("got %s in place %s (%s), want it not told apart", best.Setting, best.Places(), best.Unplaced)
	}
}

func change(a Answer, part string) (Change, bool) {
	i := slices.IndexFunc(a.Changes, func(c Change) bool { return strings.Contains(c.What, part) })
	if i < 0 {
		return Change{}, false
	}
	return a.Changes[i], true
}

func TestAnAnswerSaysWhatWouldChangeIt(t *testing.T) {
	e := stored(t)
	a, err := e.Choose(Needs{Must: []string{"replay", "durable"}, Loses: NothingOnPowerLoss, Rate: 60_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, setting, command string }{
		{`"loses nothing-on-power-loss" excludes most: 45 of 57`, "", ""},
		{`Without "loses nothing-on-power-loss"`, "kafka/acks-all", ""},
		{`Only "rate 60 k/s" stands against`, "redis-streams/aof-always", ""},
		{`Only "loses nothing-on-power-loss" stands against`, "redis-streams/aof-everysec", ""},
		{`Not known of 2 settings: "rate 60 k/s"`, "kafka/acks-all-flush", "queuelab run --suite quick --tests throughput --backends kafka/acks-all-flush,kafka-3/acks-all"},
		{`Not known of 1 setting: "loses nothing-on-power-loss"`, "kafka-3/acks-all", ""},
	} {
		got, ok := change(a, c.what)
		if !ok || c.setting != "" && !slices.Contains(got.Settings, c.setting) || got.Command != c.command {
			t.Errorf("%s: got %+v of %+v, want %s and %q", c.what, got, a.Changes, c.setting, c.command)
		}
	}
	if a, err = e.Choose(Needs{Loses: NothingOnPowerLoss}); err != nil {
		t.Fatal(err)
	}
	if got, _ := change(a, "under power-loss the oracle's word"); !cmp.Equal(got.Settings, []string{"rabbitmq/topic", "rabbitmq/fanout", "nats/sync-always", "postgres/default"}) {
		t.Errorf("got %+v, want those that were not tried", got)
	}
	if got, _ := change(a, "The first place is not certain"); !strings.HasPrefix(got.Command, "queuelab run --suite full --backends redis-streams/aof-always,") {
		t.Errorf("got %+v, want how to be certain", got)
	}
	if a, err = e.Choose(Needs{Must: []string{"replay", "routing"}}); err != nil {
		t.Fatal(err)
	}
	if got, ok := change(a, `Without "routing"`); !ok || !slices.Contains(got.Settings, "kafka/acks-all") {
		t.Errorf("got %+v, want the need without which most would fit", a.Changes)
	}
	broken := with(t, as(trial.VerdictInvalid, fallen("rabbitmq", "quorum", powerLoss, 3, 0)))
	if a, err = broken.Choose(Needs{Loses: NothingOnPowerLoss}); err != nil {
		t.Fatal(err)
	}
	if _, ok := change(a, "proves nothing: rabbitmq/quorum fault power-loss: invalid"); !ok {
		t.Errorf("got %+v, want the measurement that proves nothing", a.Changes)
	}
}

func TestACandidateSaysWhatItCostsAndWhatElseItLost(t *testing.T) {
	for _, c := range stored(t).ranked(Needs{Loses: NothingOnPowerLoss}, true).Fitting() {
		if c.Cost.Runs.What == "" || c.Cost.Runs.Source == "" {
			t.Errorf("%s: got %+v, want what must run", c.Setting, c.Cost)
		}
		if c.Setting != "rabbitmq/quorum" {
			continue
		}
		if len(c.Cost.Load) != 2 || c.Cost.Load[0].At != "at full speed" || c.Cost.Load[1].At != "at 1000/s" || c.Cost.Load[0].BrokerSeconds <= 0 {
			t.Errorf("got %+v, want two bills", c.Cost.Load)
		}
		if len(c.Beware) != 1 || !strings.Contains(c.Beware[0], "1 of 3 trials under disk-full") {
			t.Errorf("got %q, want the full disk", c.Beware)
		}
	}
}

// save writes a result into a folder of dir.
func save(t *testing.T, dir, name, suite, cpu string, day int, cells ...trial.Cell) {
	t.Helper()
	r := trial.Result{Schema: trial.Schema, Run: trial.Run{ID: name, Suite: suite, StartedAt: time.Date(2026, 11, day, 0, 0, 0, 0, time.UTC), Host: trial.Host{CPU: cpu, Cores: 2}}, Cells: cells}
	if err := report.Write(filepath.Join(dir, name), r, report.Options{}); err != nil {
		t.Fatal(err)
	}
}

func TestTheNewestResultsOfOneMachineAreTaken(t *testing.T) {
	dir := t.TempDir()
	if found, err := Newest(dir); len(found) != 0 || err != nil {
		t.Errorf("got %v, %v of an empty folder, want nothing", found, err)
	}
	valid := of("rabbitmq", "classic", as(trial.VerdictAsExpected, heldCell(1, 5000, 5000, 5000)))
	save(t, dir, "old", "quick", "here", 1, valid)
	save(t, dir, "campaign", trial.SuiteFaults, "here", 4, valid)
	save(t, dir, "new", "quick", "here", 3, valid)
	save(t, dir, "elsewhere", "quick", "there", 2, valid)
	save(t, dir, "nothing", "quick", "here", 5, of("rabbitmq", "classic", as(trial.VerdictSkipped, trial.Cell{})))
	if err := os.MkdirAll(filepath.Join(dir, "torn"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "torn", report.ResultFile), []byte(`{"schema":1,`), 0o600); err != nil {
		t.Fatal(err)
	}
	found, skipped := Newest(dir)
	var got []string
	for _, s := range found {
		got = append(got, s.Result.Run.ID)
	}
	if diff := cmp.Diff([]string{"new", "old", "campaign"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if skipped == nil || !strings.Contains(skipped.Error(), "torn") {
		t.Errorf("got %v, want that one cannot be read", skipped)
	}
	if _, err := Load(filepath.Join(dir, "none")); err == nil {
		t.Error("got no error of a result that is not there")
	}
}

func TestTheTableHasEveryBackendByEveryCriterion(t *testing.T) {
	e := stored(t)
	rows := e.Table()
	var backends []string
	for _, s := range trial.Settings() {
		if !slices.Contains(backends, s.Backend) {
			backends = append(backends, s.Backend)
		}
	}
	if len(rows) != len(backends) {
		t.Fatalf("got %d rows, want %d", len(rows), len(backends))
	}
	at := map[string]string{}
	for i, r := range rows {
		if r.Backend != backends[i] || len(r.Criteria) != 9 {
			t.Errorf("got %s with %d criteria, want %s with 9", r.Backend, len(r.Criteria), backends[i])
		}
		for _, c := range r.Criteria {
			var values []string
			covered := 0
			for _, v := range c.Values {
				covered += len(v.Settings)
				values = append(values, v.String())
				if v.Value == "" || v.Source == "" && v.Value != "not measured" {
					t.Errorf("%s, %s: got %+v, want a value and where it is from", r.Backend, c.Name, v)
				}
			}
			if len(c.Values) > 1 && covered != len(r.Settings) {
				t.Errorf("%s, %s: got values of %d settings, want each of %v once", r.Backend, c.Name, covered, r.Settings)
			}
			at[r.Backend+" "+c.Name] = strings.Join(values, "; ")
		}
	}
	for cell, want := range map[string]string{
		"kafka routing":             "one consumer of each group",
		"rabbitmq routing":          "topic: one consumer of each group, by key",
		"redis-pubsub routing":      "default: every consumer; pattern: every consumer, by key",
		"redis-streams reliability": "aof-always: at least once, confirmed by disk; broker killed: lost nothing (n=1); power cut: lost nothing (n=10)",
		"kafka reliability":         "acks-all: at least once, confirmed by operating system; broker killed: lost nothing (n=9); power cut: loses (n=10)",
		"redis-list replay":         "no",
		"redis-pubsub backlog":      "none: what nobody hears is gone",
		"kafka-3 cluster":           "leader killed: loses (n=3)",
		"redis-list cluster":        "not in this lab",
		"kafka ack and order":       "order per key for all consumers",
		"redis-streams speed":       "aof-always: p99 10.5 ms at 1000/s (n=1), held 53.2 k/s (n=1)",
		"rabbitmq protocol":         "AMQP 0-9-1",
		"redis-sentinel operations": "three Sentinels",
	} {
		if !strings.Contains(at[cell], want) {
			t.Errorf("%s: got %q, want %q", cell, at[cell], want)
		}
	}
	// Nothing of it is typed: another claim is another cell.
	caps := e.Claims["redis-list/rdb"]
	caps.Replay = true
	e.Claims["redis-list/rdb"] = caps
	if got := fmt.Sprint(e.Table()[1].Criteria[2].Values); !strings.Contains(got, "rdb: yes") {
		t.Errorf("got %s, want the claim that was added", got)
	}
}
