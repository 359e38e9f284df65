// Package report turns a result into what people read: a table for the
// terminal, Markdown, one self-contained HTML page, CSV and the README's
// blocks. It sees nothing but the result, so that what it shows can be shown
// again from result.json alone.
package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"queuelab/bench/trial"
)

// row is one setting with its cells.
type row struct {
	Backend, Name      string
	Profile            string // "": an old result, of a setting that is not known any more
	Broker             trial.Broker
	Guarantee, Confirm string
	cells              []*viewCell
}

// viewCell is a cell with its address on the page.
type viewCell struct {
	*trial.Cell
	ID    string
	Index int // in the result's list
}

func (c *viewCell) Title() text {
	return say("{0}: {1}", c.Backend+"/"+c.Setting, testTitle(c))
}

// count is a number of the cell, by its path within it.
func (c *viewCell) count(path string, n int64) figure { return fig(asCount, n, c.path(path)) }

func (r *row) Setting() string { return r.Backend + "/" + r.Name }

// Floor reports whether the row measures the harness, not a broker.
func (r *row) Floor() bool { return r.Backend == "memory" }

// Unranked rows stand apart: they are not competitors.
func (r *row) Unranked() bool { return r.Floor() || r.Broker.Emulated }

// Label is the setting with what must never be overlooked about it.
func (r *row) Label() text {
	switch {
	case r.Broker.Emulated:
		return say("{0} (emulated)", r.Setting())
	case r.Floor():
		return say("{0} (harness floor)", r.Setting())
	}
	return quote(r.Setting())
}

func (r *row) of(test string) []*viewCell {
	var cells []*viewCell
	for _, c := range r.cells {
		if c.Test == test {
			cells = append(cells, c)
		}
	}
	return cells
}

func (r *row) find(test, fault string) *viewCell {
	for _, c := range r.cells {
		if c.Test == test && c.Fault == fault {
			return c
		}
	}
	return nil
}

// view is a result arranged for reading.
type view struct {
	run   trial.Run
	rows  []*row
	cells []*viewCell // in the order of the rows
}

func newView(result trial.Result) *view {
	result = normal(result)
	v := &view{run: result.Run}
	byName := map[string]*row{}
	for i := range result.Cells {
		c := &viewCell{Cell: &result.Cells[i], Index: i}
		key := c.Backend + "/" + c.Setting
		r := byName[key]
		if r == nil {
			r = &row{Backend: c.Backend, Name: c.Setting, Broker: c.Broker}
			byName[key] = r
			v.rows = append(v.rows, r)
		}
		r.absorb(c)
	}
	order, profiles := map[string]int{}, map[string]string{}
	for i, s := range trial.Settings() {
		order[s.String()], profiles[s.String()] = i-1000, s.Profile
	}
	for _, r := range v.rows {
		r.Profile = cmp.Or(r.Profile, profiles[r.Setting()])
	}
	slices.SortStableFunc(v.rows, func(a, b *row) int { return cmp.Compare(order[a.Setting()], order[b.Setting()]) })
	ids := map[string]int{}
	for _, r := range v.rows {
		slices.SortStableFunc(r.cells, func(a, b *viewCell) int {
			return cmp.Or(cmp.Compare(testOrder(a.Test), testOrder(b.Test)), cmp.Compare(faultOrder(a.Fault), faultOrder(b.Fault)))
		})
		for _, c := range r.cells {
			c.ID = slug(c.Backend, c.Setting, c.Test, c.Fault)
			ids[c.ID]++
			if n := ids[c.ID]; n > 1 {
				c.ID += "." + strconv.Itoa(n) // slugs have no dots: unique
			}
			v.cells = append(v.cells, c)
		}
	}
	return v
}

// absorb adds a cell; what a skipped cell could not know, another may.
func (r *row) absorb(c *viewCell) {
	r.cells = append(r.cells, c)
	r.Broker.Emulated = r.Broker.Emulated || c.Broker.Emulated
	r.Broker.Version = cmp.Or(r.Broker.Version, c.Broker.Version)
	r.Broker.Name = cmp.Or(r.Broker.Name, c.Broker.Name)
	r.Profile = cmp.Or(r.Profile, c.Profile)
	r.Guarantee = cmp.Or(r.Guarantee, c.Guarantee)
	r.Confirm = cmp.Or(r.Confirm, c.Confirm)
}

func testOrder(test string) int {
	return indexOr([]string{trial.TestLatency, trial.TestThroughput, trial.TestSLO, trial.TestScalingConsumers, trial.TestScalingConnections,
		trial.TestScalingPayload, trial.TestScalingBatch, trial.TestCrash, trial.TestSale}, test)
}

func faultOrder(fault string) int {
	return indexOr(trial.Faults(), fault)
}

func indexOr(known []string, s string) int {
	if i := slices.Index(known, s); i >= 0 {
		return i
	}
	return len(known)
}

// faults lists the faults that a test met, in their fixed order.
func (v *view) faults(test string) []string {
	var names []string
	for _, c := range v.cells {
		if c.Test == test && !slices.Contains(names, c.Fault) {
			names = append(names, c.Fault)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(faultOrder(a), faultOrder(b)) })
	return names
}

// worstFirst is every cell, what must be read first in front.
func (v *view) worstFirst() []*viewCell {
	cells := slices.Clone(v.cells)
	slices.SortStableFunc(cells, func(a, b *viewCell) int {
		return cmp.Compare(markOf(a.Verdict).rank, markOf(b.Verdict).rank)
	})
	return cells
}

// problems are the cells that nobody should quote a number without.
func (v *view) problems() []*viewCell {
	var cells []*viewCell
	for _, c := range v.worstFirst() {
		if markOf(c.Verdict).rank <= 3 {
			cells = append(cells, c)
		}
	}
	return cells
}

// skip is one reason and the settings that it kept out.
type skip struct {
	Reason   text
	Settings []string
}

// skips groups the skipped cells by reason, since one missing broker skips many.
func (v *view) skips() []skip {
	var out []skip
	for _, c := range v.cells {
		if c.Verdict != trial.VerdictSkipped {
			continue
		}
		reason, name := or(why(c), say("no reason was recorded")), c.Backend+"/"+c.Setting
		i := slices.IndexFunc(out, func(s skip) bool { return s.Reason.String() == reason.String() })
		if i < 0 {
			out, i = append(out, skip{Reason: reason}), len(out)
		}
		if !slices.Contains(out[i].Settings, name) {
			out[i].Settings = append(out[i].Settings, name)
		}
	}
	return out
}

// brokers lists each broker program and version once.
func (v *view) brokers() []trial.Broker {
	var out []trial.Broker
	for _, r := range v.rows {
		if b := r.Broker; b.Version != "" && b.Name != "none" && !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}

// slug makes an address of words; other scripts keep their letters' numbers.
func slug(parts ...string) string {
	var b strings.Builder
	b.WriteString("cell")
	for _, p := range parts {
		b.WriteByte('-')
		for _, r := range strings.ToLower(p) {
			switch {
			case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-':
				b.WriteRune(r)
			default:
				b.WriteString("_" + strconv.FormatInt(int64(r), 36))
			}
		}
	}
	return b.String()
}
