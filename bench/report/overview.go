package report

import (
	"cmp"
	"fmt"

	"queuelab/bench/trial"
)

// summaryGrid is everything in one line a setting.
func (v *view) summaryGrid() grid {
	g := grid{Name: "summary", Title: "One line for each setting", Columns: []column{
		{"setting", false}, {"guarantee", false}, {"end to end p50", true}, {"p99", true}, {"held", true},
	}}
	crash, sale := v.faults(trial.TestCrash), v.faults(trial.TestSale)
	n, evenCrash := v.evenTrials(trial.TestCrash)
	if evenCrash {
		g.Title += fmt.Sprintf("; killed: lost / again in %s each", plural(int64(n), "crash", "crashes"))
	} else {
		g.Title += "; killed: lost / again"
	}
	m, evenSale := v.evenTrials(trial.TestSale)
	if evenSale {
		g.Title += fmt.Sprintf("; sale: sold / stock in %s each", plural(int64(m), "run", "runs"))
	} else {
		g.Title += "; sale: sold / stock"
	}
	for _, f := range crash {
		g.Columns = append(g.Columns, column{faultTitle(f), false})
	}
	for _, f := range sale {
		g.Columns = append(g.Columns, column{"sale, " + faultTitle(f), false})
	}
	for _, r := range v.rows {
		fields := []field{settingField(r), words(r.Guarantee)}
		fields = append(fields, latencyBrief(r)...)
		fields = append(fields, heldBrief(r))
		for _, f := range crash {
			fields = append(fields, crashField(r.find(trial.TestCrash, f), evenCrash))
		}
		for _, f := range sale {
			fields = append(fields, saleText(r.find(trial.TestSale, f), evenSale, true))
		}
		g.Lines = append(g.Lines, line{r, nil, fields})
	}
	return g
}

// cellsGrid is every cell, expected against measured, worst first.
func (v *view) cellsGrid() grid {
	g := grid{Name: "cells", Title: "Every cell: expected against measured", Columns: []column{
		{"verdict", false}, {"setting", false}, {"test", false}, {"fault", false}, {"n", true}, {"expected lost", false}, {"lost", true},
		{"expected again", false}, {"again", true}, {"basis", false}, {"why", false},
	}}
	for _, c := range v.worstFirst() {
		r := v.rowOf(c)
		fields := []field{verdictField(c), settingField(r), words(c.Test), words(faultTitle(c.Fault)), number(fmt.Sprintf("%d of %d", c.Valid, c.Trials), float64(c.Valid))}
		expectLost, expectAgain, from, why := "", "", "", ""
		if e := c.Expected; e != nil {
			expectLost, expectAgain, from, why = expectedLost(e), e.Redelivered, basis(e.Basis), e.Why
		}
		lost, again := number(count(c.Lost), float64(c.Lost)), number(count(c.Redelivered), float64(c.Redelivered))
		if !measured(c.Cell) {
			lost, again = words(""), words("")
		}
		outcome := ""
		if c.Sale != nil && measured(c.Cell) {
			outcome = saleText(c, true, false).Text
		}
		fields = append(fields, words(expectLost), lost, words(expectAgain), again, words(from), words(cmp.Or(why, outcome, reasons(c.Cell), c.Note)))
		g.Lines = append(g.Lines, line{r, c, fields})
	}
	return g
}
