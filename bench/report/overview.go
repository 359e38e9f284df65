package report

import (
	"cmp"

	"queuelab/bench/trial"
)

// summaryGrid is everything in one line a setting.
func (v *view) summaryGrid() grid {
	g := grid{Name: "summary", Columns: []column{
		col("setting", false), col("guarantee", false), col("end to end p50", true), col("p99", true), col("95 % interval", true), {Key: "from send", Title: say("from send"), Num: true, Grey: true}, col("held", true),
	}}
	crash, sale := v.faults(trial.TestCrash), v.faults(trial.TestSale)
	n, evenCrash := v.evenTrials(trial.TestCrash)
	m, evenSale := v.evenTrials(trial.TestSale)
	parts := []text{say("One line for each setting")}
	if evenCrash {
		parts = append(parts, say("killed: lost / again in {0} crashes each", n))
	} else {
		parts = append(parts, say("killed: lost / again"))
	}
	if evenSale {
		parts = append(parts, many(int64(m.Float()), "sale: sold / stock in {0} run each", "sale: sold / stock in {0} runs each", m))
	} else {
		parts = append(parts, say("sale: sold / stock"))
	}
	g.Title = join(semicolon(), parts...)
	for _, f := range crash {
		g.Columns = append(g.Columns, column{Key: f, Title: faultTitle(f)})
	}
	for _, f := range sale {
		g.Columns = append(g.Columns, column{Key: "sale, " + f, Title: say("sale, {0}", faultTitle(f))})
	}
	for _, r := range v.rows {
		fields := []field{settingField(r), words(term(orDash(r.Guarantee)))}
		fields = append(fields, latencyBrief(r)...)
		fields = append(fields, p99Beside(r)...)
		fields = append(fields, heldBrief(r))
		for _, f := range crash {
			fields = append(fields, crashField(r.find(trial.TestCrash, f), evenCrash))
		}
		for _, f := range sale {
			fields = append(fields, saleText(r.find(trial.TestSale, f), evenSale, true))
		}
		g.Lines = append(g.Lines, line{Row: r, Fields: fields, Apart: r.Unranked()})
	}
	return g.trimmed()
}

// p99Beside is what stands beside a p99: its interval, and the uncorrected one.
func p99Beside(r *row) []field {
	for _, c := range r.of(trial.TestLatency) {
		if c.LatencyMicros == nil || !measured(c.Cell) {
			continue
		}
		in := nothing()
		if i := c.interval(byLatency().Metric); i != nil {
			in = words(between(asMicros, c.path(`spread["endToEnd.p99"]`), *i))
		}
		return []field{in, words(endToEndFields(c)[2].Grey)}
	}
	return []field{nothing(), nothing()}
}

// cellsGrid is every cell, expected against measured, worst first.
func (v *view) cellsGrid() grid {
	g := grid{Name: "cells", Title: say("Every cell: expected against measured"), Columns: []column{
		col("verdict", false), col("setting", false), col("profile", false), col("test", false), col("fault", false), col("n", true), col("expected lost", false), col("lost", true),
		col("expected again", false), col("again", true), col("basis", false), col("why", false),
	}}
	for _, c := range v.worstFirst() {
		r := v.rowOf(c)
		fields := []field{verdictField(c).marked(c), settingField(r), words(group{Profile: r.Profile}.Short()), words(term(orDash(c.Test))), words(faultTitle(c.Fault)),
			{Text: say("{0} of {1}", c.count("valid", int64(c.Valid)), c.count("trials", int64(c.Trials))), Sort: float64(c.Valid), HasNum: true}}
		lost, again := number(c.count("lost", c.Lost), c.ID), number(c.count("redelivered", c.Redelivered), c.ID)
		if !measured(c.Cell) {
			lost, again = nothing(), nothing()
		}
		expectLost, expectAgain, from, because := text{}, text{}, text{}, text{}
		if e := c.Expected; e != nil {
			expectLost, expectAgain, from, because = expectedLost(c), term(e.Redelivered), basis(e.Basis), term(e.Why)
		}
		outcome := text{}
		if c.Sale != nil && measured(c.Cell) {
			outcome = saleText(c, true, false).Text
		}
		fields = append(fields, words(expectLost), lost, words(expectAgain), again, words(from), words(or(because, outcome, harness(cmp.Or(reasons(c.Cell), c.Note)))))
		g.Lines = append(g.Lines, line{Row: r, Cell: c, Fields: fields, Apart: r.Unranked()})
	}
	return g
}

// marked is noisy without its reason.
func (f field) marked(c *viewCell) field {
	sub := f.Sub
	f = f.noisy(c)
	f.Sub = sub
	return f
}
