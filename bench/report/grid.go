package report

import (
	"slices"
	"unicode/utf8"

	"queuelab/bench/trial"
)

// grid is a table before it is drawn: the terminal, Markdown and HTML draw the
// same ones, so that no two of them can disagree.
type grid struct {
	Name    string
	Title   text
	Lead    text // what holds for this table alone
	Columns []column
	Lines   []line
}

type column struct {
	Key   string // its English title, by which columns are left out
	Title text
	Num   bool // numbers stand to the right
	Grey  bool // shown for what it teaches, never for ranking
}

func col(title string, num bool) column { return column{Key: title, Title: say(title), Num: num} }

// note is the column that the terminal wraps, or leaves to the remarks.
const note = "note"

// without is the grid less one column, if it has it.
func (g grid) without(title string) grid {
	i := slices.IndexFunc(g.Columns, func(c column) bool { return c.Key == title })
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

// unless is without the column if there is nothing to read in it.
func (g grid) unless(title string) grid {
	i := slices.IndexFunc(g.Columns, func(c column) bool { return c.Key == title })
	if i < 0 || slices.ContainsFunc(g.Lines, func(l line) bool { return !l.Fields[i].blank() }) {
		return g
	}
	return g.without(title)
}

type line struct {
	Row    *row
	Cell   *viewCell // nil where the line is a whole setting
	Fields []field
	ID     string // its place on the page, if it has one
	Apart  bool   // not ranked: stays below what is
}

// field is one place in a grid.
type field struct {
	Text   text
	Sub    []text // what there is room for on a page
	Grey   text   // the uncorrected number beside the corrected one
	Sort   float64
	HasNum bool  // Sort holds; otherwise the text sorts
	Mark   *mark // of the cell that the field shows
	ID     string
}

// Tight fields stay on one line.
func (f field) Tight() bool { return utf8.RuneCountInString(f.Text.String()) <= 18 && len(f.Sub) == 0 }

func words(t text) field { return field{Text: or(t, raw("-"))} }

// blank reports whether there is nothing to read.
func (f field) blank() bool {
	switch f.Text.String() {
	case "", "-", "–":
		return len(f.Sub) == 0
	}
	return false
}

func nothing() field { return words(text{}) }

func number(f figure, id string) field {
	return field{Text: f.text(), Sort: f.Float(), HasNum: true, ID: id}
}

func verdictField(c *viewCell) field {
	m := cellMark(c.Cell)
	return field{Text: say("{0} {1}", raw(m.Symbol), term(orDash(c.Verdict))), Sort: float64(m.rank), HasNum: true, Mark: &m, ID: c.ID}
}

// because adds why a verdict is not the plain one.
func (f field) because(c *viewCell) field {
	if t := why(c); !t.Empty() {
		f.Sub = append(f.Sub, t)
	}
	return f
}

func settingField(r *row) field { return field{Text: r.Label()} }

// absent is the field of a cell whose numbers are not to be read.
func absent(c *viewCell) field {
	m := markOf(c.Verdict)
	f := field{Text: say("{0} {1}", raw(m.Symbol), term(orDash(c.Verdict))), Mark: &m, ID: c.ID}
	if c.Verdict == trial.VerdictNotApplicable {
		f.Text = say("n/a")
	}
	return f.because(c)
}

// percentileField shows one percentile; src is where its latency stands.
func percentileField(p percentile, c *viewCell, src string) field {
	f := field{Text: quantile(p, c.path(src)), ID: c.ID}
	if p.supported() && p.N > 0 {
		f.Sort, f.HasNum = float64(p.Micros), true
	}
	return f
}

func (v *view) rowOf(c *viewCell) *row {
	for _, r := range v.rows {
		if r.Backend == c.Backend && r.Name == c.Setting {
			return r
		}
	}
	return &row{Backend: c.Backend, Name: c.Setting}
}
