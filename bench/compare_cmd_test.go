package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"queuelab/bench/compare"
	"queuelab/bench/trial"
)

// comparable writes a result whose throughput is about perSecond.
func comparable(t *testing.T, perSecond float64, change func(*trial.Result)) string {
	t.Helper()
	cell := trial.Cell{
		Backend: "memory", Setting: "bounded", Broker: trial.Broker{Name: "none"}, Profile: trial.ProfileMemory, Test: trial.TestThroughput, Fault: trial.FaultNone,
		Trials: 6, Valid: 6, Consumers: 1, Concurrency: 1, PayloadBytes: 100, LoopModel: "closed", Verdict: trial.VerdictAsExpected,
	}
	for i := range cell.Trials {
		cell.Runs = append(cell.Runs, trial.TrialRun{N: i + 1, RatePerSecond: perSecond + float64(i)})
	}
	r := trial.Result{Schema: trial.Schema, Cells: []trial.Cell{cell}, Run: trial.Run{
		ID: t.Name(), StartedAt: time.Date(2026, 11, 30, 9, 0, int(perSecond)%60, 0, time.UTC), Complete: true, Suite: "full", Host: trial.Host{CPU: "Example CPU", Cores: 2},
	}}
	if change != nil {
		change(&r)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "result.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCompareEndsAsItsHelpSays(t *testing.T) {
	fast, same, slow := comparable(t, 1000, nil), comparable(t, 1001, nil), comparable(t, 700, nil)
	elsewhere := comparable(t, 1002, func(r *trial.Result) { r.Run.Host.Cores = 8 })
	cut := filepath.Join(t.TempDir(), "cut.json")
	whole, err := os.ReadFile(filepath.Join(fast, "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, whole[:200], 0o600); err != nil {
		t.Fatal(err)
	}
	budget := func(text string) string {
		path := filepath.Join(t.TempDir(), "budgets.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tenPercent := budget(`{"budgets":[{"cells":"*/throughput","metric":"ratePerSecond","worsePercent":10}]}`)
	for name, c := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"no difference":        {[]string{fast, same}, 0, "no difference shown"},
		"worse, and no budget": {[]string{fast, slow}, 0, "- worse"},
		"within the budget":    {[]string{fast, same, "--budget", tenPercent}, 0, "within: memory/bounded/throughput"},
		"beyond the budget":    {[]string{fast, slow, "--budget", tenPercent}, 4, "EXCEEDED: memory/bounded/throughput ratePerSecond, at most 10 % worse"},
		"a forced difference":  {[]string{fast, elsewhere, "--force"}, 0, "was forced"},
		"another machine":      {[]string{fast, elsewhere}, 2, "cores: 2 | 8"},
		"budget of nothing":    {[]string{fast, same, "--budget", budget(`{"budgets":[{"cells":"kafka/*","metric":"ratePerSecond","worsePercent":10}]}`)}, 2, "guards nothing"},
		"budget of what":       {[]string{fast, same, "--budget", budget(`{"budgets":[{"cell":"*"}]}`)}, 2, "cells, metric, worsePercent and floor"},
		"no such setting":      {[]string{fast + ":memory/unbounded", same}, 1, "it has memory/bounded"},
		"setting of one side":  {[]string{fast + ":memory/bounded", same}, 2, "on both sides, or on neither"},
		"half a result":        {[]string{fast, cut}, 1, "ends too early, at byte"},
		"one alone":            {[]string{fast}, 1, "holds no two settings"},
		"alpha beyond 1":       {[]string{fast, same, "--alpha", "2"}, 2, "--alpha=2"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := command(t, append([]string{"compare"}, c.args...)...)
			status := 0
			var exit exitError
			switch {
			case errors.As(err, &exit):
				status = int(exit)
			case err != nil:
				status = 1
				stderr += err.Error()
			}
			if status != c.status || !strings.Contains(stdout+stderr, c.want) {
				t.Errorf("got status %d and %s%s, want %d and %q", status, stdout, stderr, c.status, c.want)
			}
		})
	}
}

func TestCompareWritesJSON(t *testing.T) {
	stdout, _, err := command(t, "compare", comparable(t, 1000, nil), comparable(t, 700, nil), "--json")
	if err != nil {
		t.Fatal(err)
	}
	var c compare.Comparison
	if err := json.Unmarshal([]byte(stdout), &c); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	r := c.Cells[0].Rows[0]
	if r.Metric != "ratePerSecond" || r.Verdict != compare.Worse || r.A.N != 6 || r.Percent == nil || *r.P > 0.01 {
		t.Errorf("got %+v", r)
	}
}

func TestTheSettingsOfAnABResultAreComparedInPairs(t *testing.T) {
	ab := comparable(t, 1000, func(r *trial.Result) {
		b := r.Cells[0]
		b.Runs = append([]trial.TrialRun{}, b.Runs...)
		for i := range b.Runs {
			b.Runs[i].RatePerSecond *= 1.5
		}
		r.Cells[0].Setting, b.Setting = "bounded#B", "bounded#A" // B comes first in the file
		r.Cells = append(r.Cells, b)
	})
	stdout, _, err := command(t, "compare", ab)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"memory/bounded#A", "6 pairs", "-33.3 %", "- worse", "Wilcoxon"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("got no %q in:\n%s", want, stdout)
		}
	}
}

func TestABRefusesWhatItCannotMeasure(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a backend of many settings": {[]string{"redis-list", "memory/bounded"}, "name one, as in redis-list/no-persistence"},
		"nothing known":              {[]string{"memory/bounded", "zeromq/fast"}, "unknown backend or setting"},
		"profiles that differ":       {[]string{"memory/bounded", "redis-streams/aof-always"}, "they promise different things"},
		"no pairs":                   {[]string{"memory/bounded", "memory/bounded", "--pairs", "0"}, "--pairs=0"},
		"unknown test":               {[]string{"memory/bounded", "memory/bounded", "--tests", "speed"}, `unknown test "speed"`},
		"a rate of hardly any":       {[]string{"memory/bounded", "memory/bounded", "--rate=0.5"}, "--rate=0.5"},
		"no time":                    {[]string{"memory/bounded", "memory/bounded", "--duration", "1ms"}, "--duration=1ms"},
		"slower than reason":         {[]string{"memory/bounded", "memory/bounded+slow=-5%"}, "+slow=20%"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, err := command(t, append([]string{"ab", "--out", t.TempDir()}, c.args...)...)
			var exit exitError
			if !errors.As(err, &exit) || exit != 2 || !strings.Contains(stderr, c.want) {
				t.Errorf("got %v and %q, want status 2 and %q", err, stderr, c.want)
			}
		})
	}
}
