package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// Budget is how much worse B may be.
type Budget struct {
	Cells        string   `json:"cells"` // a pattern over Cell.Name in which * is any text, "/" included; "": all
	Metric       string   `json:"metric"`
	WorsePercent *float64 `json:"worsePercent"` // of A; percentage points for a share of the trials
	Floor        float64  `json:"floor"`        // in the metric's unit: a smaller difference does not matter
}

// The outcomes of a budget. One that is beyond by its medians and cannot be
// tested fails too: a gate that cannot see must not open.
const (
	Within    = "within"
	Exceeded  = "exceeded"
	NotJudged = "cannot be judged"
)

// Judged is a budget applied to one row.
type Judged struct {
	Budget
	Cell    string   `json:"cell"`
	A       float64  `json:"a"`
	B       float64  `json:"b"`
	Percent *float64 `json:"percent,omitempty"` // by how much worse; none where A is 0
	P       *float64 `json:"p,omitempty"`
	Outcome string   `json:"outcome"`
	Why     string   `json:"why"`
}

// ReadBudgets reads a budget file: {"budgets": [{"cells": "*/latency", "metric":
// "endToEnd.p99", "worsePercent": 10, "floor": 200}]}. Whatever it does not know
// is an error that names what it does.
func ReadBudgets(path string) ([]Budget, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the budgets: %w", err)
	}
	budgets, err := decodeBudgets(data)
	if err != nil {
		return nil, fmt.Errorf("read the budgets %s: %w", path, err)
	}
	return budgets, nil
}

func decodeBudgets(data []byte) ([]Budget, error) {
	var file struct {
		Budgets []Budget `json:"budgets"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(&file)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, fmt.Errorf("malformed JSON at byte %d of %d: %w", syntax.Offset, len(data), err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return nil, fmt.Errorf("the JSON ends too early, at byte %d", len(data))
	case err != nil && strings.Contains(err.Error(), "unknown field"):
		return nil, fmt.Errorf("%w: the file has \"budgets\", a list; each has cells, metric, worsePercent and floor", err)
	case err != nil:
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("there is more after the budgets, at byte %d", d.InputOffset())
	}
	if len(file.Budgets) == 0 {
		return nil, errors.New(`it holds no "budgets"`)
	}
	for i, b := range file.Budgets {
		if err := b.check(); err != nil {
			return nil, fmt.Errorf("budget %d: %w", i+1, err)
		}
	}
	return file.Budgets, nil
}

func (b Budget) check() error {
	switch {
	case b.Metric == "":
		return fmt.Errorf("it names no metric: the metrics are %s", strings.Join(MetricNames(), ", "))
	case !known(b.Metric):
		return fmt.Errorf("unknown metric %q: the metrics are %s", b.Metric, strings.Join(MetricNames(), ", "))
	case b.WorsePercent == nil:
		return errors.New("it has no worsePercent")
	case *b.WorsePercent < 0 || b.Floor < 0:
		return errors.New("worsePercent and floor must not be below 0")
	}
	return nil
}

func (b Budget) matches(c Cell) bool {
	if b.Cells == "" {
		return true
	}
	pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(b.Cells), `\*`, ".*") + "$")
	names := []string{c.Name}
	if c.A != c.B { // of two settings, either's name will do
		for _, setting := range []string{c.A, c.B} {
			names = append(names, key{setting, c.Test, c.Fault}.name())
		}
	}
	for _, n := range names {
		if pattern.MatchString(n) {
			return true
		}
	}
	return false
}

// Judge applies the budgets. A budget is exceeded where B's median is worse by
// more than both its bounds and the difference is significant at alpha: one
// without the other is chance, or does not matter. What A has measured and B has
// not is not judged, which fails too. A budget that no row matches is an error,
// since it guards nothing.
func (c *Comparison) Judge(budgets []Budget) error {
	for _, b := range budgets {
		found := false
		for _, cell := range c.Cells {
			if !b.matches(cell) {
				continue
			}
			for _, r := range cell.Rows {
				if r.Metric == b.Metric {
					found = true
					c.Budgets = append(c.Budgets, b.judge(cell.Name, r))
				}
			}
		}
		for _, l := range c.lacking {
			if l.metric == b.Metric && b.matches(l.cell) {
				found = true
				c.Budgets = append(c.Budgets, Judged{Budget: b, Cell: l.cell.Name, Outcome: NotJudged, Why: "B has no valid trial of it, and A has"})
			}
		}
		if !found {
			return fmt.Errorf("the budget for %s of %q guards nothing: no cell that was compared has it", b.Metric, orAll(b.Cells))
		}
	}
	return nil
}

func orAll(pattern string) string {
	if pattern == "" {
		return "*"
	}
	return pattern
}

func (b Budget) judge(cell string, r Row) Judged {
	j := Judged{Budget: b, Cell: cell, A: r.A.Median, B: r.B.Median, P: r.P, Outcome: Within}
	sign := 1.0
	if r.HigherIsBetter {
		sign = -1
	}
	worse := sign * r.Difference.Value
	beyond := worse > b.Floor
	if r.Percent != nil {
		percent := sign * r.Percent.Value
		j.Percent = &percent
		beyond = beyond && percent > *b.WorsePercent
	}
	switch {
	case !beyond && worse <= 0:
		j.Why = "it is not worse"
	case !beyond && worse <= b.Floor:
		j.Why = fmt.Sprintf("worse by %s, and up to %s does not matter", show(worse, r.Unit), show(b.Floor, r.Unit))
	case !beyond:
		j.Why = fmt.Sprintf("worse by %s", j.amount(r))
	case r.Verdict == Worse:
		j.Outcome, j.Why = Exceeded, fmt.Sprintf("worse by %s, p %s", j.amount(r), showP(*r.P))
	case r.Verdict == Same:
		j.Why = fmt.Sprintf("worse by %s, which chance alone gives often enough: p %s", j.amount(r), showP(*r.P))
	default:
		j.Outcome, j.Why = NotJudged, fmt.Sprintf("worse by %s, and %s: %s", j.amount(r), r.Verdict, r.Note)
	}
	return j
}

// amount is by how much B is worse.
func (j Judged) amount(r Row) string {
	if j.Percent == nil {
		return show(abs(r.Difference.Value), r.Unit)
	}
	unit := "%"
	if r.Unit == unitShare {
		unit = "points"
	}
	return fmt.Sprintf("%.1f %s", *j.Percent, unit)
}

// Failed reports whether a budget is exceeded or cannot be judged.
func (c Comparison) Failed() bool {
	for _, j := range c.Budgets {
		if j.Outcome != Within {
			return true
		}
	}
	return false
}

func abs(v float64) float64 {
	if v < 0 {
		return -v
	}
	return v
}
