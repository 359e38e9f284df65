package report

import (
	"fmt"

	"queuelab/bench/trial"
)

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
