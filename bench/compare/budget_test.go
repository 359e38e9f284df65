package compare

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"queuelab/bench/trial"
)

func TestBudgetFilesAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "budgets.json")
	for text, want := range map[string]string{
		`{"budgets":[{"cells":"*/latency","metric":"endToEnd.p99","worsePercent":10,"floor":200}]}`: "",
		`{"budgets":[{"metric":"lossy","worsePercent":0}]}`:                                         "",
		`{"budgets":[{"metric":"ratePerSecond@16","worsePercent":5}]}`:                              "",
		`{"budgets":[{"metrics":"endToEnd.p99","worsePercent":10}]}`:                                "cells, metric, worsePercent and floor",
		`{"budget":[]}`:                     `unknown field "budget": the file has "budgets"`,
		`{"budgets":[]}`:                    `no "budgets"`,
		`{}`:                                `no "budgets"`,
		``:                                  "ends too early",
		`{"budgets":[{"metr`:                "ends too early",
		`{"budgets":[}]}`:                   "at byte 13",
		`[1]`:                               "cannot unmarshal",
		`{"budgets":[{"worsePercent":10}]}`: "budget 1: it names no metric: the metrics are endToEnd.p50",
		`{"budgets":[{"metric":"p99","worsePercent":10}]}`:                     `unknown metric "p99": the metrics are`,
		`{"budgets":[{"metric":"publish.p50"}]}`:                               "no worsePercent",
		`{"budgets":[{"metric":"publish.p50","worsePercent":-1}]}`:             "below 0",
		`{"budgets":[{"metric":"publish.p50","worsePercent":1}]} {"more": 1}`:  "more after the budgets",
		`{"budgets":[{"metric":"publish.p50","worsePercent":"ten"}]}`:          "cannot unmarshal",
		`{"budgets":[{"metric":"publish.p50","worsePercent":1,"floor":-0.1}]}`: "below 0",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadBudgets(path)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)):
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	if _, err := ReadBudgets(path + ".none"); err == nil {
		t.Error("got no error for a file that is not there")
	}
}

func TestBudgetsAreJudged(t *testing.T) {
	base := []float64{1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007}
	scaled := func(f float64) []float64 {
		out := make([]float64, len(base))
		for i, x := range base {
			out[i] = f * x
		}
		return out
	}
	wild := []float64{100, 2000, 90, 2100, 110, 1900, 95, 2050} // its median is 7 % beyond that of base
	for name, c := range map[string]struct {
		b       []float64
		percent float64
		floor   float64
		want    string
	}{
		"as it was":                        {base, 0, 0, Within},
		"better":                           {scaled(0.5), 0, 0, Within},
		"worse within the per cent":        {scaled(1.08), 10, 0, Within},
		"worse beyond the per cent":        {scaled(1.2), 10, 0, Exceeded},
		"beyond, and it does not matter":   {scaled(1.2), 10, 5000, Within},
		"beyond both":                      {scaled(1.2), 10, 100, Exceeded},
		"beyond by chance":                 {wild, 5, 0, Within},
		"beyond, too few to tell":          {scaled(1.2)[:3], 10, 0, NotJudged},
		"within, too few to tell anything": {scaled(1.05)[:2], 10, 0, Within},
	} {
		t.Run(name, func(t *testing.T) {
			x := base[:len(c.b)]
			a, b := sides(cellOf("s", trial.TestLatency, latencies(x)...), cellOf("s", trial.TestLatency, latencies(c.b)...))
			got := compared(t, a, b, Options{})
			if err := got.Judge([]Budget{{Cells: "redis-*/latency", Metric: "endToEnd.p50", WorsePercent: &c.percent, Floor: c.floor}}); err != nil {
				t.Fatal(err)
			}
			j := got.Budgets[0]
			if j.Outcome != c.want || got.Failed() != (c.want != Within) || j.Why == "" {
				t.Errorf("got %q (%s), failed %v, want %q", j.Outcome, j.Why, got.Failed(), c.want)
			}
			if _, err := json.Marshal(got); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFewerASecondExceedTheBudgetOfARate(t *testing.T) {
	many, few := []float64{1000, 1001, 1002, 1003, 1004, 1005}, []float64{700, 701, 702, 703, 704, 705}
	a, b := sides(cellOf("s", trial.TestThroughput, rates(many)...), cellOf("s", trial.TestThroughput, rates(few)...))
	ten := 10.0
	budgets := []Budget{{Metric: "ratePerSecond", WorsePercent: &ten}}
	for _, c := range []struct {
		a, b Side
		want string
	}{{a, b, Exceeded}, {b, a, Within}} {
		got := compared(t, c.a, c.b, Options{})
		if err := got.Judge(budgets); err != nil {
			t.Fatal(err)
		}
		if got.Budgets[0].Outcome != c.want {
			t.Errorf("got %+v, want %q", got.Budgets[0], c.want)
		}
	}
}

func TestLossHasABudgetInPoints(t *testing.T) {
	crash := func(lossy int) trial.Cell {
		c := cellOf("s", trial.TestCrash, crashes(lossy, 10)...)
		c.Fault = trial.FaultBrokerKill
		return c
	}
	a, b := sides(crash(0), crash(8))
	none := 0.0
	got := compared(t, a, b, Options{})
	if err := got.Judge([]Budget{{Cells: "*/crash/*", Metric: Lossy, WorsePercent: &none}}); err != nil {
		t.Fatal(err)
	}
	if j := got.Budgets[0]; j.Outcome != Exceeded || !strings.Contains(j.Why, "80.0 points") {
		t.Errorf("got %+v, want it exceeded by 80 points", j)
	}
}

func TestFromNothingToSomethingIsBeyondEveryPerCent(t *testing.T) {
	a, b := sides(cellOf("s", trial.TestLatency, latencies(make([]float64, 8))...), cellOf("s", trial.TestLatency, latencies([]float64{30, 31, 32, 33, 34, 35, 36, 37})...))
	hundred := 100.0
	got := compared(t, a, b, Options{})
	if err := got.Judge([]Budget{{Metric: "endToEnd.p50", WorsePercent: &hundred, Floor: 10}, {Metric: "endToEnd.p50", WorsePercent: &hundred, Floor: 50}}); err != nil {
		t.Fatal(err)
	}
	if got.Budgets[0].Outcome != Exceeded || got.Budgets[1].Outcome != Within {
		t.Errorf("got %+v, want only the floor to save it", got.Budgets)
	}
}

func TestABudgetThatGuardsNothingIsAnError(t *testing.T) {
	a, b := sides(cellOf("s", trial.TestLatency, latencies([]float64{1, 2, 3})...), cellOf("s", trial.TestLatency, latencies([]float64{1, 2, 3})...))
	ten := 10.0
	for _, budget := range []Budget{
		{Cells: "*/throughput", Metric: "ratePerSecond", WorsePercent: &ten},
		{Cells: "redis-lists/*", Metric: "endToEnd.p50", WorsePercent: &ten},
		{Cells: "latency", Metric: "endToEnd.p50", WorsePercent: &ten},
	} {
		got := compared(t, a, b, Options{})
		if err := got.Judge([]Budget{budget}); err == nil || !strings.Contains(err.Error(), "guards nothing") {
			t.Errorf("%+v: got %v", budget, err)
		}
	}
}

func TestABudgetDoesNotPassOverWhatBHasNot(t *testing.T) {
	base := []float64{1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007}
	ten := 10.0
	budgets := []Budget{{Cells: "*/latency", Metric: "endToEnd.p50", WorsePercent: &ten}}
	a := resultOf("a", monday, cellOf("x", trial.TestLatency, latencies(base)...), cellOf("y", trial.TestLatency, latencies(base)...))
	failed := latencies(base)
	for i := range failed {
		failed[i].Invalid = []string{"the broker died"}
	}
	for name, b := range map[string]trial.Result{
		"every trial of it is invalid": resultOf("b", monday, cellOf("x", trial.TestLatency, latencies(base)...), cellOf("y", trial.TestLatency, failed...)),
		"it was not measured":          resultOf("b", monday, cellOf("x", trial.TestLatency, latencies(base)...)),
	} {
		c, err := Compare(Of("a", a), Of("b", b), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Judge(budgets); err != nil {
			t.Fatal(err)
		}
		if len(c.Budgets) != 2 || !c.Failed() || c.Budgets[1].Outcome != NotJudged || !strings.Contains(c.Budgets[1].Cell, "y") {
			t.Errorf("%s: got %+v, want the other cell judged and this one not", name, c.Budgets)
		}
	}
}
