package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"queuelab/bench/stat"
	"queuelab/bench/trial"
)

// The verdicts on B, seen from A.
const (
	Better   = "better"
	Worse    = "worse"
	Same     = "no difference shown"    // which does not show that there is none
	TooFew   = "too few trials to tell" // whatever the numbers, p stays above alpha
	Untested = "no test possible"       // there are no single trials
)

// The tests.
const (
	testMannWhitney = "Mann-Whitney"
	testSignedRank  = "Wilcoxon signed-rank"
	testFisher      = "Fisher"
)

// seed of the bootstraps: a comparison that is read twice says the same.
const seed = 1

// Row is one metric of a cell.
type Row struct {
	Metric         string         `json:"metric"`
	Unit           string         `json:"unit"`
	HigherIsBetter bool           `json:"higherIsBetter"`
	A              trial.Interval `json:"a"` // an N of 0: it has a median alone, of all trials together
	B              trial.Interval `json:"b"`
	Difference     Change         `json:"difference"`        // B against A, in the unit
	Percent        *Change        `json:"percent,omitempty"` // the same in per cent of A; none where a value is 0
	Greater        *float64       `json:"greater,omitempty"` // the effect's size: the chance that a trial of B is greater than one of A
	Test           string         `json:"test"`
	P              *float64       `json:"p,omitempty"`
	LeastP         *float64       `json:"leastP,omitempty"`    // that so many trials can give
	Adjusted       *float64       `json:"adjustedP,omitempty"` // where the tests were corrected together
	Verdict        string         `json:"verdict"`
	Noisy          string         `json:"noisy,omitempty"` // why a side must not be ranked by its median
	Note           string         `json:"note,omitempty"`

	rises bool // B tends to be greater
}

// Change is a difference with its interval at 95 %. With fewer than six trials
// of a side the interval spans what single trials differ by.
type Change struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// row compares a metric of the trials, in pairs where they are.
func (c *Comparison) row(m trial.Metric, a, b sample, paired bool) Row {
	r := Row{Metric: m.Name, Unit: m.Unit, HigherIsBetter: m.HigherIsBetter}
	if a.only || b.only {
		return r.untested(a, b)
	}
	alone := 0
	if paired {
		a, b, alone = pairs(a, b)
		if len(a.values) == 0 {
			r.Verdict, r.Note = TooFew, "no round has a valid trial on both sides"
			return r
		}
	}
	as, bs := a.xs(), b.xs()
	r.A, r.B = interval(as), interval(bs)
	var p, least float64
	var diff, ratio stat.Estimate
	var hasRatio bool
	if paired {
		r.Test = testSignedRank
		p, least = stat.SignedRank(as, bs), stat.LeastSignedRank(len(as))
		diff, ratio, hasRatio = stat.PairedApart(as, bs, seed)
	} else {
		r.Test = testMannWhitney
		p, least = stat.MannWhitney(as, bs), stat.LeastMannWhitney(len(as), len(bs))
		diff, ratio, hasRatio = stat.Apart(as, bs, seed)
	}
	r.Difference = Change(diff)
	if hasRatio {
		r.Percent = &Change{100 * (ratio.Value - 1), 100 * (ratio.Low - 1), 100 * (ratio.High - 1)}
	}
	greater := stat.Greater(as, bs)
	r.P, r.LeastP, r.Greater = &p, &least, &greater
	r.rises = greater > 0.5
	if paired { // what the test goes by
		r.rises = r.Difference.Value > 0 || r.Difference.Value == 0 && r.rises
	}
	r.judge(c.Alpha)
	switch {
	case r.Verdict == TooFew:
		r.Note = fmt.Sprintf("%s cannot give a p below %.2g", trials(len(as), len(bs), paired), least)
	case alone > 0:
		r.Note = fmt.Sprintf("%d trials without a valid one in the same round are left out", alone)
	}
	if why := noisy(r.A, as); why != "" {
		r.Noisy = "A: " + why
	} else if why := noisy(r.B, bs); why != "" {
		r.Noisy = "B: " + why
	}
	return r
}

func noisy(i trial.Interval, xs []float64) string {
	if len(xs) < stat.MinTrials {
		return stat.Noisy(xs)
	}
	return stat.NoisyInterval(i.Median, i.Low, i.High)
}

func trials(na, nb int, paired bool) string {
	if paired {
		return fmt.Sprintf("%d pairs", na)
	}
	return fmt.Sprintf("%d and %d trials", na, nb)
}

// judge draws the verdict from p.
func (r *Row) judge(alpha float64) {
	p := *r.P
	if r.Adjusted != nil {
		p = *r.Adjusted
	}
	alpha *= 1 + 1e-9 // a p that is alpha may be off by rounding
	switch {
	case *r.LeastP > alpha:
		r.Verdict = TooFew
	case p > alpha:
		r.Verdict = Same
	case r.rises == r.HigherIsBetter:
		r.Verdict = Better
	default:
		r.Verdict = Worse
	}
}

// together corrects the tests by Benjamini and Hochberg: alpha becomes the share
// of false alarms among what is found, which, where nothing differs, is the chance
// of any at all. What makes one metric worse makes others worse with it, and they
// then help each other, where Holm's or Bonferroni's correction hides all. Rows
// that could not reach alpha by themselves do not count.
func (c *Comparison) together() {
	var rows []*Row
	for i := range c.Cells {
		for j := range c.Cells[i].Rows {
			if r := &c.Cells[i].Rows[j]; r.P != nil && r.Verdict != TooFew {
				rows = append(rows, r)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b *Row) int { return cmp.Compare(*a.P, *b.P) })
	adjusted := 1.0
	for i := len(rows) - 1; i >= 0; i-- {
		adjusted = math.Min(adjusted, *rows[i].P*float64(len(rows))/float64(i+1))
		p := adjusted
		rows[i].Adjusted = &p
		rows[i].judge(c.Alpha)
	}
}

// untested is the row of a result without single trials.
func (r Row) untested(a, b sample) Row {
	alone := func(s sample) trial.Interval {
		if s.only {
			return trial.Interval{Median: s.median, Low: s.median, High: s.median}
		}
		return interval(s.xs())
	}
	r.A, r.B = alone(a), alone(b)
	d := r.B.Median - r.A.Median
	r.Difference = Change{d, d, d}
	if r.A.Median > 0 && r.B.Median > 0 {
		p := 100 * d / r.A.Median
		r.Percent = &Change{p, p, p}
	}
	r.Verdict = Untested
	r.Note = "a result of an older queuelab, or a test that is one search: it holds no single trials, only their sum"
	return r
}

func interval(xs []float64) trial.Interval {
	low, high := stat.MedianInterval(xs, seed)
	return trial.Interval{Median: stat.Median(xs), Low: low, High: high, N: len(xs)}
}

// pairs keeps the trials of the same round.
func pairs(a, b sample) (x, y sample, alone int) {
	of := map[int]float64{}
	for _, v := range b.values {
		of[v.n] = v.x
	}
	for _, v := range a.values {
		if other, ok := of[v.n]; ok {
			x.values, y.values = append(x.values, v), append(y.values, value{v.n, other})
		}
	}
	return x, y, len(a.values) + len(b.values) - 2*len(x.values)
}

// shareRow compares how many of the trials are so. Its per cent are points, and
// its interval, of the two exact ones, is wider than 95 %.
func (c *Comparison) shareRow(name string, a, b share) Row {
	p, least := stat.Fisher(a.k, a.n, b.k, b.n), stat.LeastFisher(a.n, b.n)
	of := func(s share) trial.Interval {
		low, high := stat.ClopperPearson(s.k, s.n)
		return trial.Interval{Median: float64(s.k) / float64(s.n), Low: low, High: high, N: s.n}
	}
	r := Row{Metric: name, Unit: unitShare, A: of(a), B: of(b), Test: testFisher, P: &p, LeastP: &least}
	r.Difference = Change{r.B.Median - r.A.Median, r.B.Low - r.A.High, r.B.High - r.A.Low}
	r.Percent = &Change{100 * r.Difference.Value, 100 * r.Difference.Low, 100 * r.Difference.High}
	r.rises = r.Difference.Value > 0
	r.judge(c.Alpha)
	if r.Verdict == TooFew {
		r.Note = fmt.Sprintf("%s cannot give a p below %.2g", trials(a.n, b.n, false), least)
	}
	if a.k+b.k == 0 {
		r.Note = fmt.Sprintf("0 of %d excludes more than %.0f %% at 95 %%", min(a.n, b.n), math.Ceil(100*stat.NoneExcludes(min(a.n, b.n))))
	}
	return r
}
