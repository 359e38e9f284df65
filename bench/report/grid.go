package report

import (
	"cmp"
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

func (v *view) rowOf(c *viewCell) *row {
	for _, r := range v.rows {
		if r.Backend == c.Backend && r.Name == c.Setting {
			return r
		}
	}
	return &row{Backend: c.Backend, Name: c.Setting}
}
