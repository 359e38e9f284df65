package learn

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Figure is one number that was measured.
type Figure struct {
	Name  string  `json:"name"` // as texts and conditions call it
	Means Text    `json:"means"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"` // "": it is a count
}

// String is the value with its unit, as texts show it.
func (f Figure) String() string {
	digits := 0
	if f.Value != math.Trunc(f.Value) {
		digits = max(0, 2-int(math.Log10(max(1, math.Abs(f.Value)))))
	}
	s := strconv.FormatFloat(f.Value, 'f', digits, 64)
	if f.Unit != "" {
		s += " " + f.Unit
	}
	return s
}

// Conditions are what figures must be, by their names.
type Conditions map[string]Want

// Want is what one figure must be: between two values, both included.
type Want struct{ Min, Max float64 }

// Is wants exactly that.
func Is(v float64) Want { return Want{v, v} }

// AtLeast wants so much or more.
func AtLeast(v float64) Want { return Want{v, math.Inf(1)} }

// AtMost wants so much or less.
func AtMost(v float64) Want { return Want{math.Inf(-1), v} }

// Between wants a value from min to max.
func Between(min, max float64) Want { return Want{min, max} }

func (w Want) String() string {
	show := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	switch {
	case w.Min == w.Max:
		return show(w.Min)
	case math.IsInf(w.Max, 1):
		return "at least " + show(w.Min)
	case math.IsInf(w.Min, -1):
		return "at most " + show(w.Max)
	}
	return show(w.Min) + " to " + show(w.Max)
}

// holds is an error that names each figure which is not as wanted, or was not
// measured.
func (c Conditions) holds(fs []Figure) error {
	var wrong []string
	for name, w := range c {
		i := slices.IndexFunc(fs, func(f Figure) bool { return f.Name == name })
		switch {
		case i < 0:
			wrong = append(wrong, name+" was not measured")
		case !(fs[i].Value >= w.Min && fs[i].Value <= w.Max):
			wrong = append(wrong, fmt.Sprintf("%s is %s, expected %s", name, fs[i], w))
		}
	}
	if wrong == nil {
		return nil
	}
	slices.Sort(wrong)
	return fmt.Errorf("%s", strings.Join(wrong, "; "))
}

// Judge says which choice the figures prove, -1 for none, and what is wrong: a
// figure that is not as expected, a choice that should be right and is not, or
// another one that is right as well.
func (l Lesson) Judge(fs []Figure) (measured int, err error) {
	measured = -1
	var also []int
	for i, c := range l.Choices {
		if c.If.holds(fs) == nil {
			also = append(also, i)
		}
	}
	if len(also) > 0 {
		measured = also[0]
	}
	switch {
	case len(also) > 1:
		return measured, fmt.Errorf("the figures prove %d answers at once: the conditions of the lesson do not tell them apart", len(also))
	case measured < 0:
		return -1, fmt.Errorf("the measured answer is none of those: %w", l.Choices[l.Right].If.holds(fs))
	case measured != l.Right:
		return measured, fmt.Errorf("the measured answer is %q: %w", l.Choices[measured].EN, l.Choices[l.Right].If.holds(fs))
	}
	if err := l.Expect.holds(fs); err != nil {
		return measured, fmt.Errorf("what the lesson says is not what was measured: %w", err)
	}
	return measured, nil
}

// Fill puts the figures into a text. A name without a figure stays as it is.
func Fill(text string, fs []Figure) string {
	for _, f := range fs {
		text = strings.ReplaceAll(text, "{"+f.Name+"}", f.String())
	}
	return text
}
