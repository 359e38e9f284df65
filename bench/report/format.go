package report

import (
	"math"
	"strconv"
	"strings"

	"queuelab/bench/trial"
)

// digits3 shows three significant digits without an exponent.
func digits3(v float64) string {
	a := math.Abs(v)
	switch {
	case a >= 99.95 || v == 0 || math.IsNaN(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.9995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// brief is digits3 without zeros at its end.
func brief(v float64) string {
	s := digits3(v)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// micros shows a latency given in microseconds.
func micros(us int64) string {
	if us < 1000 {
		return strconv.FormatInt(us, 10) + " µs"
	}
	return microsOf(float64(us))
}

// microsOf is micros for a median, which may lie between two microseconds.
func microsOf(v float64) string {
	switch {
	case v < 1000:
		return brief(v) + " µs"
	case v < 999_500:
		return digits3(v/1e3) + " ms"
	default:
		return digits3(v/1e6) + " s"
	}
}

// count shows a number with thousands apart.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// rate shows messages per second.
func rate(perSecond float64) string {
	switch {
	case perSecond <= 0 || math.IsNaN(perSecond) || math.IsInf(perSecond, 0):
		return "-"
	case perSecond < 9999.5:
		return count(int64(math.Round(perSecond))) + "/s"
	case perSecond < 999_500:
		return digits3(perSecond/1e3) + " k/s"
	default:
		return digits3(perSecond/1e6) + " M/s"
	}
}

func bytesSize(n int64) string {
	switch {
	case n <= 0:
		return "-"
	case n < 1<<20:
		return count(n>>10) + " KiB"
	case n < 1<<30:
		return count(n>>20) + " MiB"
	default:
		return brief(float64(n)/(1<<30)) + " GiB"
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// percentile is one point of a latency, and whether n supports it: ten
// messages must lie beyond it, or it is an anecdote.
type percentile struct {
	Name   string
	Key    string // in the result
	Micros int64
	Needs  int64
	N      int64
}

func (p percentile) supported() bool { return p.N >= p.Needs }

func (p percentile) String() string {
	switch {
	case p.N == 0:
		return "-"
	case !p.supported():
		return "n<" + count(p.Needs)
	}
	return micros(p.Micros)
}

func percentiles(p trial.Percentiles) []percentile {
	return []percentile{
		{"p50", "p50", p.P50, 20, p.N}, {"p90", "p90", p.P90, 100, p.N}, {"p99", "p99", p.P99, 1000, p.N},
		{"p99.9", "p999", p.P999, 10_000, p.N}, {"max", "max", p.Max, 1, p.N},
	}
}

// confirmText shortens the one long word of queue.Confirm.
func confirmText(s string) text {
	if s == "operating system" {
		return say("OS")
	}
	return term(orDash(s))
}

// trialsText is n as tables show it: valid trials, and of how many.
func trialsText(c *viewCell) text {
	n := c.count("valid", int64(c.Valid))
	if c.Valid == c.Trials {
		return say("n={0}", n)
	}
	return say("n={0} of {1}", n, c.count("trials", int64(c.Trials)))
}
