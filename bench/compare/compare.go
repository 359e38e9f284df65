package compare

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"queuelab/bench/trial"
)

// Schema is the version of Comparison's JSON form. Fields are added, never
// renamed.
const Schema = 1

// DefaultAlpha is how often a difference is found where there is none.
const DefaultAlpha = 0.05

// Options are Compare's.
type Options struct {
	Alpha float64 // 0: DefaultAlpha
	Force bool    // compare what is incomparable, too
	FDR   bool    // alpha is the share of false ones among the differences found, not among the tests
}

// Comparison is what Compare found.
type Comparison struct {
	Schema      int          `json:"schema"`
	Alpha       float64      `json:"alpha"`
	FDR         bool         `json:"fdr"` // see Options
	A           Source       `json:"a"`
	B           Source       `json:"b"`
	Paired      bool         `json:"paired"`      // both are settings of one run, interleaved in rounds
	Refused     bool         `json:"refused"`     // incomparable, and not forced: there are no cells
	Differences []Difference `json:"differences"` // what makes incomparable first
	Warnings    []string     `json:"warnings"`
	Cells       []Cell       `json:"cells"`
	OnlyInA     []string     `json:"onlyInA"`
	OnlyInB     []string     `json:"onlyInB"`
	Tested      int          `json:"tested"` // rows with a test that could have found something
	Found       int          `json:"found"`  // of these, better or worse
	Budgets     []Judged     `json:"budgets,omitempty"`

	lacking []lack // what budgets must not pass over
}

// lack is a metric that A has of a cell and B has not.
type lack struct {
	cell   Cell
	metric string
}

// Source says what a side was read from.
type Source struct {
	Given   string `json:"given"`
	Setting string `json:"setting,omitempty"`
	Runs    []Run  `json:"runs"`
}

// Run is one result of a side.
type Run struct {
	Path      string    `json:"path"`
	ID        string    `json:"id"`
	StartedAt time.Time `json:"startedAt"`
	Commit    string    `json:"commit"`
}

// Cell is a cell of A beside that of B.
type Cell struct {
	Name  string   `json:"name"` // backend/setting/test, and the fault where there is one; without the setting where two are compared
	Test  string   `json:"test"`
	Fault string   `json:"fault"`
	A     string   `json:"a"` // backend/setting
	B     string   `json:"b"`
	Rows  []Row    `json:"rows"`
	Notes []string `json:"notes"`
}

// ErrNothing is what Compare wraps when the sides have no cell in common.
var ErrNothing = errors.New("they have no cell in common")

// Compare compares B with A. Where both have a setting chosen, these two stand
// against each other; otherwise each setting stands against its namesake. It
// errs when there is nothing to compare.
func Compare(a, b Side, o Options) (Comparison, error) {
	if o.Alpha == 0 {
		o.Alpha = DefaultAlpha
	}
	c := Comparison{
		Schema: Schema, Alpha: o.Alpha, FDR: o.FDR, A: source(a), B: source(b), Differences: []Difference{}, Warnings: []string{},
		Cells: []Cell{}, OnlyInA: []string{}, OnlyInB: []string{},
	}
	if (a.Setting == "") != (b.Setting == "") {
		return c, fmt.Errorf("compare %s with %s: choose a setting on both sides, or on neither", a.Given, b.Given)
	}
	for _, s := range []Side{a, b} {
		if err := s.check(); err != nil {
			return c, err
		}
	}
	keysA, cellsA := a.cells()
	keysB, cellsB := b.cells()
	var keys []key
	for _, k := range keysA {
		if cellsB[k] == nil {
			c.OnlyInA = append(c.OnlyInA, k.name())
			c.lacks(Cell{Name: k.name(), Test: k.test, Fault: k.fault}, cellsA[k], nil)
			continue
		}
		keys = append(keys, k)
	}
	for _, k := range keysB {
		if cellsA[k] == nil {
			c.OnlyInB = append(c.OnlyInB, k.name())
		}
	}
	if len(keys) == 0 {
		return c, fmt.Errorf("compare %s with %s: %w: the first has %s; the second has %s", a.Given, b.Given, ErrNothing, some(c.OnlyInA), some(c.OnlyInB))
	}
	c.Paired = a.Setting != "" && a.Setting != b.Setting && len(a.Results) == 1 && len(b.Results) == 1 && sameRun(a.Results[0], b.Results[0])
	c.Warnings = append(c.Warnings, warnings(a, b, c.Paired)...)
	c.Differences = append(c.Differences, conditions(a, b, keys, [2]map[key][]trial.Cell{cellsA, cellsB})...)
	if slices.ContainsFunc(c.Differences, func(d Difference) bool { return d.Incomparable }) {
		if c.Refused = !o.Force; c.Refused {
			return c, nil
		}
		c.Warnings = append(c.Warnings, "the conditions make these numbers incomparable, and the comparison was forced: a difference below may be that of the conditions")
	}
	for _, k := range keys {
		c.Cells = append(c.Cells, c.cell(k, cellsA[k], cellsB[k]))
	}
	if c.FDR {
		c.together()
	}
	for _, cell := range c.Cells {
		for _, r := range cell.Rows {
			switch r.Verdict {
			case Better, Worse:
				c.Found++
				c.Tested++
			case Same:
				c.Tested++
			}
		}
	}
	return c, nil
}

func some(names []string) string {
	if len(names) > 6 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:6], ", "), len(names)-6)
	}
	return strings.Join(names, ", ")
}

func source(s Side) Source {
	src := Source{Given: s.Given, Setting: s.Setting, Runs: []Run{}}
	for i, r := range s.Results {
		src.Runs = append(src.Runs, Run{Path: s.Paths[i], ID: r.Run.ID, StartedAt: r.Run.StartedAt, Commit: r.Run.Commit})
	}
	return src
}

func sameRun(a, b trial.Result) bool {
	return a.Run.ID == b.Run.ID && a.Run.StartedAt.Equal(b.Run.StartedAt) && !a.Run.StartedAt.IsZero()
}

// apart is how far in time two runs may lie before the machine is likely to
// have changed between them.
const apart = time.Hour

// warnings are about when the runs took place, and about what they are.
func warnings(a, b Side, paired bool) (out []string) {
	for _, s := range []Side{a, b} {
		for i, r := range s.Results {
			if !r.Run.Complete {
				out = append(out, fmt.Sprintf("%s was interrupted: what it had finished is compared", pathOr(s, i)))
			}
		}
	}
	if paired {
		return out
	}
	same := 0
	for _, x := range a.Results {
		for _, y := range b.Results {
			if sameRun(x, y) {
				same++
			}
		}
	}
	switch {
	case same > 0 && a.Setting != b.Setting:
		return append(out, "a run is on both sides: some of the trials were interleaved, others were not")
	case same > 0:
		return append(out, "a run is on both sides: it is compared with itself, and the numbers cannot differ by chance as those of two runs would")
	}
	if gap := max(furthest(a, b), furthest(b, a)); gap > apart {
		return append(out, fmt.Sprintf("the runs started %s apart: by then a machine has other tenants, other caches, a warmer or colder disk, "+
			"and all of that falls on one side. A difference below need not be that of what was changed; `queuelab ab` interleaves the two", strings.TrimSuffix(gap.Round(time.Minute).String(), "0s")))
	}
	return append(out, "the runs were not interleaved: what the machine did meanwhile falls on one side. `queuelab ab` interleaves two settings; for two programs run A, B, A, B and compare the sets")
}

// furthest is the longest time from a run of a to the nearest of b: sets that
// were taken in turns are near each other.
func furthest(a, b Side) (longest time.Duration) {
	for _, x := range a.Results {
		nearest := time.Duration(-1)
		for _, y := range b.Results {
			if d := x.Run.StartedAt.Sub(y.Run.StartedAt).Abs(); nearest < 0 || d < nearest {
				nearest = d
			}
		}
		longest = max(longest, nearest)
	}
	return longest
}

func pathOr(s Side, i int) string {
	if s.Paths[i] != "" {
		return s.Paths[i]
	}
	return s.Given
}

// cell compares one cell, metric by metric.
func (c *Comparison) cell(k key, a, b []trial.Cell) Cell {
	cell := Cell{Name: k.name(), Test: k.test, Fault: k.fault, A: settingOf(a[0]), B: settingOf(b[0]), Rows: []Row{}, Notes: []string{}}
	for _, m := range trial.Metrics() {
		x, y := sampleOf(m, a), sampleOf(m, b)
		if !x.empty() && !y.empty() {
			cell.Rows = append(cell.Rows, c.row(m, x, y, c.Paired))
		}
	}
	for _, m := range scaled(a) {
		x, y := scaledSample(m, a), scaledSample(m, b)
		if !x.empty() && !y.empty() {
			cell.Rows = append(cell.Rows, c.row(m, x, y, c.Paired))
		}
	}
	c.lacks(cell, a, b)
	for _, name := range []string{Lossy, Duplicates, Saturated} {
		x, y := shareOf(name, a), shareOf(name, b)
		always := name == Lossy && (k.test == trial.TestCrash || k.test == trial.TestSale)
		if x.n > 0 && y.n > 0 && (always || x.k+y.k > 0) {
			cell.Rows = append(cell.Rows, c.shareRow(name, x, y))
		}
	}
	cell.Notes = append(cell.Notes, remarks("A", a)...)
	cell.Notes = append(cell.Notes, remarks("B", b)...)
	if x, y := verdicts(a), verdicts(b); x != y {
		cell.Notes = append(cell.Notes, fmt.Sprintf("verdict of the run: A %s, B %s", x, y))
	}
	return cell
}

// lacks notes what B has no valid trial of: all of them failed, or it was not measured.
func (c *Comparison) lacks(cell Cell, a, b []trial.Cell) {
	note := func(m trial.Metric, x, y sample) {
		if !x.empty() && y.empty() {
			c.lacking = append(c.lacking, lack{cell, m.Name})
		}
	}
	for _, m := range trial.Metrics() {
		note(m, sampleOf(m, a), sampleOf(m, b))
	}
	for _, m := range scaled(a) {
		note(m, scaledSample(m, a), scaledSample(m, b))
	}
	for _, name := range []string{Lossy, Duplicates, Saturated} {
		if shareOf(name, a).n > 0 && shareOf(name, b).n == 0 {
			c.lacking = append(c.lacking, lack{cell, name})
		}
	}
}

func verdicts(cells []trial.Cell) string {
	var seen []string
	for _, c := range cells {
		if !slices.Contains(seen, c.Verdict) {
			seen = append(seen, c.Verdict)
		}
	}
	slices.Sort(seen)
	return strings.Join(seen, " and ")
}
