package report

import (
	"cmp"
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
	when := quote(day(r.StartedAt))
	if !r.FinishedAt.IsZero() {
		when = say("{0}, took {1}", when, r.FinishedAt.Sub(r.StartedAt).Round(time.Second).String())
	}
	if !r.Complete {
		when = say("{0}, INTERRUPTED: only what was finished is here", when)
	}
	fsync := say("unknown")
	if h.FsyncMicros.P50 > 0 {
		fsync = say("p50 {0}, p99 {1}, in the brokers' directory", fig(asMicros, h.FsyncMicros.P50, "run.host.fsyncMicros.p50"), fig(asMicros, h.FsyncMicros.P99, "run.host.fsyncMicros.p99"))
	}
	out := []meaning{
		{say("run"), say("{0}, suite {1}, {2}, {3}", orDash(r.ID), orDash(r.Suite), v.settingsNumber(), v.cellsNumber())},
		{say("when"), when},
		{say("command"), quote("queuelab " + strings.Join(r.Args, " "))},
		{say("version"), say("commit {0}, {1}", orDash(r.Commit), orDash(r.GoVersion))},
		{say("brokers"), v.brokerText()},
		{say("machine"), say("{0}, {1} cores, {2} memory, {3}", orDash(h.CPU), fig(asCount, h.Cores, "run.host.cores"), fig(asBytes, h.MemoryBytes, "run.host.memoryBytes"), orDash(h.Kernel))},
		{say("fsync of 4 KiB"), fsync},
		{say("load before"), say("{0} over one minute", fig(asPlain, h.Load1, "run.host.load1"))},
	}
	if h.ClockSource != "" {
		out = append(out, meaning{say("clock source"), quote(h.ClockSource)})
	}
	if p := h.CPUPressure; p != nil {
		out = append(out, meaning{say("waiting for a core"), say("{0} of the time before the run, {1} during it", fig(asPercent, p.Before, "run.host.cpuPressure.before"), fig(asPercent, p.During, "run.host.cpuPressure.during"))})
	}
	if n := h.NoiseMicros; n != nil {
		out = append(out, meaning{say("noise of the machine"), say("a sleep of a millisecond ends late by p50 {0}, p99 {1}, max {2}", fig(asMicros, n.P50, "run.host.noiseMicros.p50"),
			fig(asMicros, n.P99, "run.host.noiseMicros.p99"), fig(asMicros, n.Max, "run.host.noiseMicros.max"))})
	}
	if h.ClockJumpMillis != 0 {
		out = append(out, meaning{say("clock set during the run"), say("by {0}; latencies count on another clock and are not touched", fig(asMillis, h.ClockJumpMillis, "run.host.clockJumpMillis"))})
	}
	if t := v.overhead(); !t.Empty() {
		out = append(out, meaning{say("harness floor"), t})
	}
	return append(out, meaning{say("seeds"), v.seedText()}, meaning{say("shape"), v.shapeText()})
}

// overhead is what the harness itself adds: it stands in every report, since
// no number of it means anything below that.
func (v *view) overhead() text {
	f := v.run.Floor
	if f == nil {
		return text{}
	}
	q := percentiles(f.EndToEnd)
	at := "run.floor.endToEndMicros"
	return say("the memory queue with the ledger on, at {0}: end to end p50 {1}, p99 {2}; recording costs {3} a message", fig(asRate, f.RatePerSecond, "run.floor.ratePerSecond"),
		quantile(q[0], at), quantile(q[2], at), fig(asNanos, f.RecordNanos, "run.floor.recordNanos"))
}

func (v *view) cellsNumber() text {
	return many(int64(len(v.cells)), "{0} cell", "{0} cells", calc(asCount, len(v.cells), "cells"))
}

func (v *view) settingsNumber() text {
	return many(int64(len(v.rows)), "{0} setting", "{0} settings", calc(asCount, len(v.rows), "settings"))
}

func (v *view) brokerText() text {
	var parts []text
	for _, b := range v.brokers() {
		t := quote(b.Name + " " + b.Version)
		if b.Emulated {
			t = say("{0} (emulated)", t)
		}
		parts = append(parts, t)
	}
	return or(join(comma(), parts...), raw("-"))
}

// seedText shows the seeds; each cell has its own beside it.
func (v *view) seedText() text {
	var seen []*viewCell
	for _, c := range v.cells {
		if !slices.ContainsFunc(seen, func(o *viewCell) bool { return o.Seed == c.Seed }) {
			seen = append(seen, c)
		}
	}
	slices.SortFunc(seen, func(a, b *viewCell) int { return cmp.Compare(a.Seed, b.Seed) })
	seed := func(c *viewCell) figure { return fig(asInteger, c.Seed, c.path("seed")) }
	switch len(seen) {
	case 0:
		return raw("-")
	case 1:
		return seed(seen[0]).text()
	}
	return say("{0} different, from {1} to {2}; each cell has its own beside it", calc(asCount, len(seen), "seeds"), seed(seen[0]), seed(seen[len(seen)-1]))
}

// shapeText shows what was the same in all cells, or that it was not.
func (v *view) shapeText() text {
	same := func(path string, get func(*trial.Cell) int) text {
		var seen []*viewCell
		for _, c := range v.cells {
			if measured(c.Cell) && !slices.ContainsFunc(seen, func(o *viewCell) bool { return get(o.Cell) == get(c.Cell) }) {
				seen = append(seen, c)
			}
		}
		slices.SortFunc(seen, func(a, b *viewCell) int { return cmp.Compare(get(a.Cell), get(b.Cell)) })
		value := func(c *viewCell) figure { return fig(asInteger, get(c.Cell), c.path(path)) }
		switch len(seen) {
		case 0:
			return raw("-")
		case 1:
			return value(seen[0]).text()
		}
		return say("{0} to {1}", value(seen[0]), value(seen[len(seen)-1]))
	}
	return join(comma(),
		say("payload {0} B", same("payloadBytes", func(c *trial.Cell) int { return c.PayloadBytes })),
		say("consumer processes {0}", same("consumers", func(c *trial.Cell) int { return c.Consumers })),
		say("handlers in each {0}", same("concurrency", func(c *trial.Cell) int { return c.Concurrency })),
		say("prefetch {0}", same("prefetch", func(c *trial.Cell) int { return c.Prefetch })))
}

// trouble is a problem cell in one sentence.
func trouble(c *viewCell) text {
	because := why(c)
	if c.Verdict == trial.VerdictContradiction || c.Verdict == trial.VerdictOracleUpdate {
		t := say("expected {0}; measured lost {1}, again {2}", expectation(c), c.count("lost", c.Lost), c.count("redelivered", c.Redelivered))
		if c.Sale != nil {
			t = say("sold {0} of {1}", c.count("sale.sold", int64(c.Sale.Sold)), c.count("sale.stock", int64(c.Sale.Stock)))
			t = join(comma(), append([]text{t}, saleTroubles(c)...)...)
		}
		if !because.Empty() {
			t = say("{0} ({1})", t, because)
		}
		because = t
	}
	return join(colon(), term(orDash(c.Verdict)), because)
}

// boundText is what numbers of trials show at best.
func boundText() text {
	var parts []text
	for _, n := range []int{1, 3, 10, 30, 59, 100, 299} {
		parts = append(parts, say("{0}: {1} %", n, raw(brief(excluded(n)))))
	}
	return say("The unit is the crash: what one crash loses is lost together, so a million messages over three crashes are three observations. "+
		"With nothing lost in n crashes, a loss probability per crash above this is excluded at 95 % (one-sided, exact): {0}. "+
		"A loss seen once proves that it happens. For latency and throughput, an interval for a median needs six runs; with fewer, close numbers have no order.", join(comma(), parts...))
}
