package report

import (
	"queuelab/bench/trial"
)

// crashField shows lost / again of one fault, with the verdict, and with n
// where the trials differ from cell to cell.
func crashField(c *viewCell, even bool) field {
	if c == nil {
		return nothing()
	}
	if !measured(c.Cell) {
		return absent(c)
	}
	m := cellMark(c.Cell)
	f := field{
		Text: say("{0} / {1}{2} {3}", c.count("lost", c.Lost), c.count("redelivered", c.Redelivered), trialsUnless(even, c), raw(m.Symbol)),
		Sub:  []text{say("expected: {0}", expectation(c))},
		Sort: float64(c.Lost), HasNum: true, Mark: &m, ID: c.ID,
	}
	if t := lossText(c); !t.Empty() {
		f.Sub = append([]text{t}, f.Sub...)
	}
	if r := c.RecoveryMillis; r != nil {
		back, longest := fig(asMillis, r.P50, c.path("recoveryMillis.p50")), fig(asMillis, r.Max, c.path("recoveryMillis.max"))
		if r.Max != r.P50 {
			f.Sub = append(f.Sub, say("back after {0}, longest {1}", back, longest))
		} else {
			f.Sub = append(f.Sub, say("back after {0}", back))
		}
	}
	if c.EffectDuplicates > 0 {
		f.Sub = append(f.Sub, say("{0} effects would have come twice", c.count("effectDuplicates", c.EffectDuplicates)))
	}
	if c.LossWindowMillis != nil {
		f.Sub = append(f.Sub, say("oldest loss: {0} before the fault", fig(asMillis, c.LossWindowMillis.Max, c.path("lossWindowMillis.max"))))
	}
	if c.Unconfirmed > 0 {
		f.Sub = append(f.Sub, say("{0} of {1} accepted were unconfirmed", c.count("unconfirmed", c.Unconfirmed), c.count("accepted", c.Accepted)))
	}
	return f
}

func (v *view) crashGrid() grid {
	g := grid{Name: "crash", Title: say("Killed with SIGKILL: messages lost / delivered again"), Columns: []column{col("setting", false), col("guarantee", false), col("confirmed by", false)}}
	return v.matrix(g, trial.TestCrash, crashField)
}

// saleField shows units sold of those in stock, and whatever went wrong.
func saleField(c *viewCell, even bool) field { return saleText(c, even, false) }

func saleText(c *viewCell, even, short bool) field {
	if c == nil {
		return nothing()
	}
	if c.Sale == nil || !measured(c.Cell) {
		return absent(c)
	}
	s, m := c.Sale, cellMark(c.Cell)
	t := say("{0}/{1}", c.count("sale.sold", int64(s.Sold)), c.count("sale.stock", int64(s.Stock)))
	troubles := saleTroubles(c)
	if short && len(troubles) > 1 {
		troubles = troubles[:1]
	}
	t = join(comma(), append([]text{t}, troubles...)...)
	return field{
		Text: say("{0}{1} {2}", t, trialsUnless(even, c), raw(m.Symbol)),
		Sub:  []text{say("{0} buyers for {1} units", c.count("sale.buyers", int64(s.Buyers)), c.count("sale.stock", int64(s.Stock)))},
		Sort: float64(wrong(s)), HasNum: true, Mark: &m, ID: c.ID,
	}
}

// saleTroubles lists what went wrong, worst first. Undersold is left out where
// the units sold say it already.
func saleTroubles(c *viewCell) []text {
	s := c.Sale
	var out []text
	undersold := s.Undersold
	if undersold == s.Stock-s.Sold {
		undersold = 0
	}
	for _, t := range []struct {
		n    int
		path string
		word func(figure) text
	}{
		{s.Oversold, "oversold", func(f figure) text { return say("{0} oversold", f) }},
		{s.Double, "double", func(f figure) text { return say("{0} double", f) }},
		{s.LostOrders, "lostOrders", func(f figure) text { return say("{0} lost", f) }},
		{s.Waiting, "waiting", func(f figure) text { return say("{0} waiting", f) }},
		{undersold, "undersold", func(f figure) text { return say("{0} undersold", f) }},
	} {
		if t.n != 0 {
			out = append(out, t.word(c.count("sale."+t.path, int64(t.n))))
		}
	}
	return out
}

func (v *view) saleGrid() grid {
	g := grid{Name: "sale", Title: say("The sale: units sold / in stock, and what went wrong"), Columns: []column{col("setting", false), col("guarantee", false), col("confirmed by", false)}}
	return v.matrix(g, trial.TestSale, saleField)
}

// matrix adds a column for every fault of a test, and a line for every setting
// that has a cell of it.
func (v *view) matrix(g grid, test string, show func(*viewCell, bool) field) grid {
	faults := v.faults(test)
	n, even := v.evenTrials(test)
	if even {
		g.Title = say("{0} (n={1} each)", g.Title, n)
	}
	for _, f := range faults {
		g.Columns = append(g.Columns, column{Key: f, Title: faultTitle(f)})
	}
	for _, r := range v.rows {
		if len(r.of(test)) == 0 {
			continue
		}
		fields := []field{settingField(r), words(term(orDash(r.Guarantee))), words(confirmText(r.Confirm))}
		for _, f := range faults {
			fields = append(fields, show(r.find(test, f), even))
		}
		g.Lines = append(g.Lines, line{Row: r, Fields: fields, Apart: r.Unranked()})
	}
	return g
}

// evenTrials reports whether every cell of a test that can be read has the same
// number of trials, all valid: then one mention of n is enough.
func (v *view) evenTrials(test string) (n figure, even bool) {
	seen := false
	for _, c := range v.cells {
		if c.Test != test || !measured(c.Cell) {
			continue
		}
		if c.Valid != c.Trials || seen && float64(c.Valid) != n.Float() {
			return figure{}, false
		}
		n, seen = c.count("valid", int64(c.Valid)), true
	}
	return n, seen && n.Float() > 0
}

func trialsUnless(even bool, c *viewCell) text {
	if even {
		return text{}
	}
	return concat(raw(" "), trialsText(c))
}
