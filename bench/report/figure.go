package report

import (
	"html/template"
	"math"
	"strconv"

	"queuelab/bench/trial"
)

// The ways in which a number is shown.
const (
	asCount   = "count"
	asInteger = "integer" // without thousands: a seed, a trial's number
	asMicros  = "micros"
	asMillis  = "millis"
	asNanos   = "nanos"
	asRate    = "rate"
	asBytes   = "bytes"
	asShare   = "share"   // of 1, shown in per cent
	asPercent = "percent" // in per cent already
	asPlain   = "plain"
	asSeconds = "seconds"
)

// figure is a number of the result and where it stands there. Whoever doubts a
// number on the page can look it up, and a test does.
type figure struct {
	Kind  string
	Value any    // int64, uint64 or float64
	Src   string // the path in result.json
	Calc  string // instead of Src: what was computed, of which paths
	shown string // instead of the form of the kind
}

func fig[T int | int64 | uint64 | float64](kind string, v T, src string) figure {
	f := figure{Kind: kind, Src: src}
	switch v := any(v).(type) {
	case int:
		f.Value = int64(v)
	default:
		f.Value = v
	}
	return f
}

// calc is a figure that stands nowhere in the result but follows from it.
func calc[T int | int64 | float64](kind string, v T, how string) figure {
	f := fig(kind, v, "")
	f.Calc = how
	return f
}

// Float is the number for scales and sorting.
func (f figure) Float() float64 {
	switch v := f.Value.(type) {
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

func (f figure) String() string {
	if f.shown != "" {
		return f.shown
	}
	return show(f.Kind, f.Value)
}

// show writes a number as its kind has it.
func show(kind string, value any) string {
	v := figure{Value: value}.Float()
	switch kind {
	case asCount:
		if n, ok := value.(int64); ok {
			return count(n)
		}
		return brief(v)
	case asInteger:
		switch n := value.(type) {
		case int64:
			return strconv.FormatInt(n, 10)
		case uint64:
			return strconv.FormatUint(n, 10)
		}
		return brief(v)
	case asMicros:
		return microsOf(v)
	case asMillis:
		return microsOf(v * 1000)
	case asNanos:
		return brief(v) + " ns"
	case asRate:
		return rate(v)
	case asBytes:
		return bytesSize(clampInt(v))
	case asShare:
		return brief(100*v) + " %"
	case asPercent:
		return brief(v) + " %"
	case asSeconds:
		return brief(v) + " s"
	}
	return brief(v)
}

func clampInt(v float64) int64 {
	switch {
	case math.IsNaN(v):
		return 0
	case v >= math.MaxInt64:
		return math.MaxInt64
	case v <= math.MinInt64:
		return math.MinInt64
	}
	return int64(v)
}

func (f figure) attributes() string {
	s := `data-k="` + f.Kind + `" data-v="` + f.number() + `" `
	if f.Src == "" {
		return s + `data-calc="` + template.HTMLEscapeString(f.Calc) + `"`
	}
	return s + `data-src="` + template.HTMLEscapeString(f.Src) + `"`
}

// Attributes are for an element that stands for the number, such as a mark.
func (f figure) Attributes() template.HTMLAttr { return template.HTMLAttr(f.attributes()) }

func (f figure) number() string {
	switch v := f.Value.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	}
	return strconv.FormatFloat(f.Float(), 'g', -1, 64)
}

// path is where a part of the cell stands in the result.
func (c *viewCell) path(rest string) string {
	return "cells[" + strconv.Itoa(c.Index) + "]." + rest
}

// quantile is one percentile of a latency as a figure; one that too few
// messages support is words.
func quantile(p percentile, src string) text {
	if p.N == 0 || !p.supported() {
		return raw(p.String())
	}
	return fig(asMicros, p.Micros, src+"."+p.Key).text()
}

// interval is a median with its interval; nil: the result has none.
func (c *viewCell) interval(metric string) *trial.Interval {
	i, ok := c.Spread[metric]
	if !ok || i.N <= 0 {
		return nil
	}
	return &i
}

// between shows an interval's ends.
func between(kind, src string, i trial.Interval) text {
	return concat(fig(kind, i.Low, src+".low").text(), raw(" – "), fig(kind, i.High, src+".high").text())
}
