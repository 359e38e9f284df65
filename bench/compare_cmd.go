package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"queuelab/bench/compare"
)

// overBudget is the exit status of a comparison that a budget stops.
const overBudget = 4

type compareCmd struct {
	A      string  `arg:"" sep:"none" help:"A result's directory or file, or several separated by commas, whose trials are pooled. With :backend/setting at its end, only that setting."`
	B      string  `arg:"" optional:"" sep:"none" help:"What is compared with it, likewise. Without it, the two settings of A are compared, as 'queuelab ab' measured them."`
	Alpha  float64 `default:"0.05" help:"How often a difference may be found where there is none."`
	FDR    bool    `name:"fdr" help:"Let alpha be the share of false ones among the differences found (Benjamini-Hochberg), not among the tests. It is so for the result of 'queuelab ab'."`
	Budget string  `placeholder:"FILE" help:"JSON: how much worse B may be."`
	Force  bool    `help:"Compare although the conditions make the numbers incomparable."`
	JSON   bool    `name:"json" help:"Machine-readable."`
}

func (compareCmd) Help() string {
	return `Conditions first: what makes the numbers incomparable (processor, cores, suite,
load, payload, consumers, profile ...) is refused with exit status 2, unless forced.
Then, per cell and metric, B against A: medians, the difference with its interval at
95 %, a Mann-Whitney test (in pairs of one round, Wilcoxon's; for the share of trials
that lost something, Fisher's), and a verdict.

A budget file:
  {"budgets": [{"cells": "*/latency", "metric": "endToEnd.p99", "worsePercent": 10, "floor": 200}]}
cells is a pattern over backend/setting/test, and /fault where there is one, in which
* is any text; without it, all. A budget is exceeded where B's median is worse by more
than worsePercent and by more than floor, in the metric's unit, and the difference is
significant. Beyond by its medians and too few trials to tell is no pass either.
Metrics: ` + strings.Join(compare.MetricNames(), ", ") + `.

Exit status: 0 compared, whatever was found; 1 unreadable; 2 wrong usage, refused, or a
budget that guards nothing; 4 a budget is exceeded or cannot be judged.

Examples:
  queuelab compare results/monday results/tuesday
  queuelab compare before1,before2,before3 after1,after2,after3 --budget budgets.json
  queuelab compare results/monday:redis-streams/aof-always results/monday:rabbitmq/quorum
  queuelab compare results/ab --json`
}

func (c *compareCmd) Validate() error {
	if !(c.Alpha > 0 && c.Alpha < 1) {
		return fmt.Errorf("--alpha=%v: want more than 0 and less than 1", c.Alpha)
	}
	return nil
}

func (c *compareCmd) Run(e *env) error {
	var budgets []compare.Budget
	if c.Budget != "" {
		var err error
		if budgets, err = compare.ReadBudgets(c.Budget); err != nil {
			return usage(e, err)
		}
	}
	a, b, err := c.sides()
	if err != nil {
		return err
	}
	found, err := compare.Compare(a, b, compare.Options{Alpha: c.Alpha, Force: c.Force, FDR: c.FDR})
	if err != nil {
		return usage(e, err)
	}
	var misjudged error
	if !found.Refused {
		misjudged = found.Judge(budgets)
	}
	if err := show(e, found, c.JSON); err != nil {
		return err
	}
	switch {
	case found.Refused:
		return exitError(2)
	case misjudged != nil:
		return usage(e, misjudged)
	case found.Failed():
		return exitError(overBudget)
	}
	return nil
}

// sides reads what is compared. One result alone stands for its two settings.
func (c *compareCmd) sides() (a, b compare.Side, err error) {
	if a, err = compare.Load(c.A); err != nil {
		return a, b, err
	}
	if c.B != "" {
		b, err = compare.Load(c.B)
		return a, b, err
	}
	settings := a.Settings()
	if len(settings) != 2 || a.Setting != "" {
		return a, b, fmt.Errorf("%s alone holds no two settings to compare: it has %s; name a second result, or a setting on each side, as in %s:backend/setting",
			c.A, strings.Join(settings, ", "), c.A)
	}
	slices.SortStableFunc(settings, func(x, y string) int { return strings.Compare(label(x), label(y)) })
	c.FDR = true
	return a.Choose(settings[0]), a.Choose(settings[1]), nil
}

// label is what tells the two cells of ab apart.
func label(setting string) string {
	_, l, _ := strings.Cut(setting, "#")
	return l
}

// show prints a comparison for people or for programs.
func show(e *env, c compare.Comparison, machine bool) error {
	if !machine {
		return compare.Text(e.stdout, c, e.color)
	}
	enc := json.NewEncoder(e.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(c)
}
