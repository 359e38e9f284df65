package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"queuelab/bench/trial"
)

// grid is a table before it is drawn: the terminal, Markdown and HTML draw the
// same ones, so that no two of them can disagree.
type grid struct {
	Name    string
	Title   string
	Columns []column
	Lines   []line
}

type column struct {
	Title string
	Num   bool // numbers stand to the right
}

// without is the grid less one column, if it has it.
func (g grid) without(title string) grid {
	i := slices.IndexFunc(g.Columns, func(c column) bool { return c.Title == title })
	if i < 0 {
		return g
	}
	g.Columns = slices.Delete(slices.Clone(g.Columns), i, i+1)
	g.Lines = slices.Clone(g.Lines)
	for k := range g.Lines {
		g.Lines[k].Fields = slices.Delete(slices.Clone(g.Lines[k].Fields), i, i+1)
	}
	return g
}

type line struct {
	Row    *row
	Cell   *viewCell // nil where the line is a whole setting
	Fields []field
}

// Tight fields stay on one line.
func (f field) Tight() bool { return len(f.Text) <= 18 && len(f.Sub) == 0 }

// field is one place in a grid.
type field struct {
	Text   string
	Sub    []string // what there is room for on a page
	Sort   float64
	HasNum bool  // Sort holds; otherwise the text sorts
	Mark   *mark // of the cell that the field shows
	ID     string
}

func words(s string) field { return field{Text: orDash(s)} }

func number(s string, v float64) field { return field{Text: s, Sort: v, HasNum: true} }

func verdictField(c *viewCell) field {
	m := cellMark(c.Cell)
	return field{Text: m.Symbol + " " + orDash(c.Verdict), Sort: float64(m.rank), HasNum: true, Mark: &m, ID: c.ID}
}

// because adds why a verdict is not the plain one.
func (f field) because(c *viewCell) field {
	if why := cmp.Or(reasons(c.Cell), c.Note); why != "" {
		f.Sub = append(f.Sub, why)
	}
	return f
}

func settingField(r *row) field { return field{Text: r.Label()} }

// absent is the field of a cell whose numbers are not to be read.
func absent(c *viewCell) field {
	m := markOf(c.Verdict)
	f := field{Text: strings.TrimSpace(m.Symbol + " " + c.Verdict), Mark: &m, ID: c.ID}
	if c.Verdict == trial.VerdictNotApplicable {
		f.Text = "n/a"
	}
	return f.because(c)
}

func percentileField(p percentile, c *viewCell) field {
	f := field{Text: p.String(), ID: c.ID}
	if p.supported() && p.N > 0 {
		f.Sort, f.HasNum = float64(p.Micros), true
	}
	return f
}

// note is what must stand beside a row's numbers.
func note(r *row, cells ...*viewCell) string {
	var parts []string
	if r.Broker.Emulated {
		parts = append(parts, "emulated, not ranked")
	} else if r.Floor() {
		parts = append(parts, "harness floor, not ranked")
	}
	for _, c := range cells {
		if c == nil {
			continue
		}
		switch c.Verdict {
		case trial.VerdictSkipped, trial.VerdictInvalid, trial.VerdictSaturated, trial.VerdictContradiction:
			part := c.Verdict
			if why := cmp.Or(reasons(c.Cell), c.Note); why != "" {
				part += ": " + why
			}
			if len(parts) == 0 || parts[len(parts)-1] != part {
				parts = append(parts, part)
			}
		}
	}
	return strings.Join(parts, "; ")
}

func (v *view) latencyGrid() grid {
	g := grid{Name: "latency", Title: "Latency at the offered rate, open loop, from the due time", Columns: []column{
		{"setting", false}, {"guarantee", false}, {"confirmed by", false}, {"offered", true}, {"publish p50", true}, {"publish p99", true},
		{"end to end p50", true}, {"p90", true}, {"p99", true}, {"p99.9", true}, {"max", true}, {"n", true}, {"verdict", false},
	}}
	for _, r := range v.rows {
		for _, c := range r.of(trial.TestLatency) {
			fields := []field{settingField(r), words(r.Guarantee), words(confirmText(r.Confirm)), number(rate(c.RatePerSecond), c.RatePerSecond)}
			if c.LatencyMicros == nil || !measured(c.Cell) {
				for range 8 {
					fields = append(fields, words(""))
				}
			} else {
				publish, e2e := percentiles(c.LatencyMicros.Publish), percentiles(c.LatencyMicros.EndToEnd)
				fields = append(fields, percentileField(publish[0], c), percentileField(publish[2], c))
				for _, p := range e2e {
					fields = append(fields, percentileField(p, c))
				}
				n := c.LatencyMicros.EndToEnd.N
				fields = append(fields, number(count(n), float64(n)))
			}
			fields = append(fields, verdictField(c).because(c))
			g.Lines = append(g.Lines, line{r, c, fields})
		}
	}
	return g
}

func (v *view) throughputGrid() grid {
	g := grid{Name: "throughput", Title: "Throughput held, closed loop", Columns: []column{
		{"setting", false}, {"guarantee", false}, {"confirmed by", false}, {"held", true}, {"runs", true}, {"sent", true}, {"lost", true}, {"payload", true}, {"verdict", false},
	}}
	for _, r := range v.rows {
		for _, c := range r.of(trial.TestThroughput) {
			fields := []field{settingField(r), words(r.Guarantee), words(confirmText(r.Confirm))}
			if !measured(c.Cell) {
				fields = append(fields, words(""), words(""), words(""), words(""), words(""))
			} else {
				fields = append(fields, number(rate(c.RatePerSecond), c.RatePerSecond), number(trialsText(c.Cell), float64(c.Valid)),
					number(count(c.Sent), float64(c.Sent)), number(count(c.Lost), float64(c.Lost)), number(count(int64(c.PayloadBytes))+" B", float64(c.PayloadBytes)))
			}
			fields = append(fields, verdictField(c).because(c))
			g.Lines = append(g.Lines, line{r, c, fields})
		}
	}
	return g
}

// crashField shows lost / again of one fault, with the verdict, and with n
// where the trials differ from cell to cell.
func crashField(c *viewCell, even bool) field {
	if c == nil {
		return words("")
	}
	if !measured(c.Cell) {
		return absent(c)
	}
	m := cellMark(c.Cell)
	f := field{
		Text: fmt.Sprintf("%s / %s%s %s", count(c.Lost), count(c.Redelivered), trialsUnless(even, c), m.Symbol),
		Sub:  []string{"expected: " + expectation(c.Expected)},
		Sort: float64(c.Lost), HasNum: true, Mark: &m, ID: c.ID,
	}
	if c.RecoveryMillis != nil {
		back := "back after " + millis(c.RecoveryMillis.P50)
		if c.RecoveryMillis.Max != c.RecoveryMillis.P50 {
			back += ", longest " + millis(c.RecoveryMillis.Max)
		}
		f.Sub = append(f.Sub, back)
	}
	if c.Unconfirmed > 0 {
		f.Sub = append(f.Sub, count(c.Unconfirmed)+" of "+count(c.Accepted)+" accepted were unconfirmed")
	}
	return f
}

func (v *view) crashGrid() grid {
	g := grid{Name: "crash", Title: "Killed with SIGKILL: messages lost / delivered again", Columns: []column{{"setting", false}, {"guarantee", false}, {"confirmed by", false}}}
	return v.matrix(g, trial.TestCrash, crashField)
}

// saleField shows units sold of those in stock, and whatever went wrong.
func saleField(c *viewCell, even bool) field { return saleText(c, even, false) }

func saleText(c *viewCell, even, short bool) field {
	if c == nil {
		return words("")
	}
	if c.Sale == nil || !measured(c.Cell) {
		return absent(c)
	}
	s, m := c.Sale, cellMark(c.Cell)
	text := fmt.Sprintf("%s/%s", count(int64(s.Sold)), count(int64(s.Stock)))
	for i, w := range saleTroubles(s) {
		if short && i > 0 {
			break
		}
		text += ", " + w
	}
	return field{
		Text: text + trialsUnless(even, c) + " " + m.Symbol,
		Sub:  []string{plural(int64(s.Buyers), "buyer", "buyers") + " for " + plural(int64(s.Stock), "unit", "units")},
		Sort: float64(wrong(s)), HasNum: true, Mark: &m, ID: c.ID,
	}
}

// saleTroubles lists what went wrong, worst first. Undersold is left out where
// the units sold say it already.
func saleTroubles(s *trial.Sale) []string {
	var out []string
	undersold := s.Undersold
	if undersold == s.Stock-s.Sold {
		undersold = 0
	}
	for _, t := range []struct {
		n    int
		word string
	}{{s.Oversold, "oversold"}, {s.Double, "double"}, {s.LostOrders, "lost"}, {s.Waiting, "waiting"}, {undersold, "undersold"}} {
		if t.n != 0 {
			out = append(out, count(int64(t.n))+" "+t.word)
		}
	}
	return out
}

func (v *view) saleGrid() grid {
	g := grid{Name: "sale", Title: "The sale: units sold / in stock, and what went wrong", Columns: []column{{"setting", false}, {"guarantee", false}, {"confirmed by", false}}}
	return v.matrix(g, trial.TestSale, saleField)
}

// matrix adds a column for every fault of a test, and a line for every setting
// that has a cell of it.
func (v *view) matrix(g grid, test string, show func(*viewCell, bool) field) grid {
	faults := v.faults(test)
	n, even := v.evenTrials(test)
	if even {
		g.Title += fmt.Sprintf(" (n=%d each)", n)
	}
	for _, f := range faults {
		g.Columns = append(g.Columns, column{faultTitle(f), false})
	}
	for _, r := range v.rows {
		if len(r.of(test)) == 0 {
			continue
		}
		fields := []field{settingField(r), words(r.Guarantee), words(confirmText(r.Confirm))}
		for _, f := range faults {
			fields = append(fields, show(r.find(test, f), even))
		}
		g.Lines = append(g.Lines, line{r, nil, fields})
	}
	return g
}

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

// evenTrials reports whether every cell of a test that can be read has the same
// number of trials, all valid: then one mention of n is enough.
func (v *view) evenTrials(test string) (n int, even bool) {
	for _, c := range v.cells {
		if c.Test != test || !measured(c.Cell) {
			continue
		}
		if c.Valid != c.Trials || n != 0 && c.Valid != n {
			return 0, false
		}
		n = c.Valid
	}
	return n, n > 0
}

func trialsUnless(even bool, c *viewCell) string {
	if even {
		return ""
	}
	return " " + trialsText(c.Cell)
}

// latencyBrief is p50 and p99 end to end of the first cell that can be read.
func latencyBrief(r *row) []field {
	cells := r.of(trial.TestLatency)
	for _, c := range cells {
		if c.LatencyMicros == nil || !measured(c.Cell) {
			continue
		}
		e2e := percentiles(c.LatencyMicros.EndToEnd)
		return []field{percentileField(e2e[0], c), saturatedMark(percentileField(e2e[2], c), c)}
	}
	if len(cells) > 0 {
		f := absent(cells[0])
		return []field{f, words("")}
	}
	return []field{words(""), words("")}
}

func saturatedMark(f field, c *viewCell) field {
	if c.Verdict == trial.VerdictSaturated {
		m := markOf(c.Verdict)
		f.Text, f.Mark = f.Text+" "+m.Symbol, &m
	}
	return f
}

func heldBrief(r *row) field {
	cells := r.of(trial.TestThroughput)
	for _, c := range cells {
		if measured(c.Cell) {
			return field{Text: rate(c.RatePerSecond), Sort: c.RatePerSecond, HasNum: true, ID: c.ID}
		}
	}
	if len(cells) > 0 {
		return absent(cells[0])
	}
	return words("")
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

func (v *view) rowOf(c *viewCell) *row {
	for _, r := range v.rows {
		if r.Backend == c.Backend && r.Name == c.Setting {
			return r
		}
	}
	return &row{Backend: c.Backend, Name: c.Setting}
}
