package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"queuelab/bench/trial"
)

func day(t time.Time) string {
	if t.IsZero() {
		return "no date"
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

// conditions are what a number depends on and no table shows.
func (v *view) conditions() []meaning {
	r, h := v.run, v.run.Host
	when := day(r.StartedAt)
	if !r.FinishedAt.IsZero() {
		when += ", took " + r.FinishedAt.Sub(r.StartedAt).Round(time.Second).String()
	}
	if !r.Complete {
		when += ", INTERRUPTED: only what was finished is here"
	}
	return []meaning{
		{"run", orDash(r.ID) + ", suite " + orDash(r.Suite) + ", " + plural(int64(len(v.rows)), "setting", "settings") + ", " + plural(int64(len(v.cells)), "cell", "cells")},
		{"when", when},
		{"command", "queuelab " + strings.Join(r.Args, " ")},
		{"version", "commit " + orDash(r.Commit) + ", " + orDash(r.GoVersion)},
		{"brokers", v.brokerText()},
		{"machine", fmt.Sprintf("%s, %s, %s memory, %s", orDash(h.CPU), plural(int64(h.Cores), "core", "cores"), bytesSize(h.MemoryBytes), orDash(h.Kernel))},
		{"fsync of 4 KiB", "p50 " + fsyncText(h.FsyncMicros.P50) + ", p99 " + fsyncText(h.FsyncMicros.P99) + ", in the brokers' directory"},
		{"load before", brief(h.Load1) + " over one minute"},
		{"seeds", v.seedText()},
		{"shape", v.shapeText()},
	}
}

func (v *view) brokerText() string {
	var parts []string
	for _, b := range v.brokers() {
		s := b.Name + " " + b.Version
		if b.Emulated {
			s += " (emulated)"
		}
		parts = append(parts, s)
	}
	return orDash(strings.Join(parts, ", "))
}

// seedText shows the seeds; each cell has its own beside it.
func (v *view) seedText() string {
	var seeds []uint64
	for _, c := range v.cells {
		if !slices.Contains(seeds, c.Seed) {
			seeds = append(seeds, c.Seed)
		}
	}
	slices.Sort(seeds)
	switch len(seeds) {
	case 0:
		return "-"
	case 1:
		return fmt.Sprint(seeds[0])
	}
	return fmt.Sprintf("%d different, from %d to %d; each cell has its own beside it", len(seeds), seeds[0], seeds[len(seeds)-1])
}

// shapeText shows what was the same in all cells, or that it was not.
func (v *view) shapeText() string {
	same := func(name, unit string, get func(*trial.Cell) int) string {
		var values []int
		for _, c := range v.cells {
			if measured(c.Cell) && !slices.Contains(values, get(c.Cell)) {
				values = append(values, get(c.Cell))
			}
		}
		slices.Sort(values)
		switch len(values) {
		case 0:
			return name + " -"
		case 1:
			return fmt.Sprintf("%s %d%s", name, values[0], unit)
		}
		return fmt.Sprintf("%s %d to %d%s", name, values[0], values[len(values)-1], unit)
	}
	return strings.Join([]string{
		same("payload", " B", func(c *trial.Cell) int { return c.PayloadBytes }),
		same("consumer processes", "", func(c *trial.Cell) int { return c.Consumers }),
		same("handlers in each", "", func(c *trial.Cell) int { return c.Concurrency }),
		same("prefetch", "", func(c *trial.Cell) int { return c.Prefetch }),
	}, ", ")
}

// trouble is a problem cell in one sentence.
func trouble(c *viewCell) string {
	why := cmp.Or(reasons(c.Cell), c.Note)
	if c.Verdict == trial.VerdictContradiction || c.Verdict == trial.VerdictOracleUpdate {
		s := fmt.Sprintf("expected %s; measured lost %s, again %s", expectation(c.Expected), count(c.Lost), count(c.Redelivered))
		if c.Sale != nil {
			s = "sold " + fmt.Sprintf("%d of %d", c.Sale.Sold, c.Sale.Stock)
			for _, t := range saleTroubles(c.Sale) {
				s += ", " + t
			}
		}
		if why != "" {
			s += " (" + why + ")"
		}
		why = s
	}
	if why == "" {
		return orDash(c.Verdict)
	}
	return c.Verdict + ": " + why
}

// boundText is what numbers of trials show at best.
func boundText() string {
	var parts []string
	for _, n := range []int{1, 3, 10, 30, 59, 100, 299} {
		parts = append(parts, fmt.Sprintf("%d: %s %%", n, brief(excluded(n))))
	}
	return "The unit is the crash: what one crash loses is lost together, so a million messages over three crashes are three observations. " +
		"With nothing lost in n crashes, a loss probability per crash above this is excluded at 95 % (one-sided, exact): " + strings.Join(parts, ", ") +
		". A loss seen once proves that it happens. For latency and throughput, an interval for a median needs six runs; with fewer, close numbers have no order."
}
