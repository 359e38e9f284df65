package report

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"queuelab/bench/trial"
)

// The charts share these, in SVG user units.
const (
	chartLeft  = 232.0 // where names end and the plot begins
	chartPlot  = 560.0
	chartWidth = 1060.0
)

// px is a place in a chart; a tenth of a unit is finer than any screen.
type px float64

func (p px) String() string { return strconv.FormatFloat(math.Round(float64(p)*10)/10, 'f', -1, 64) }

type tick struct {
	X    px
	Text string
}

// chart is a picture with one band a row; the template draws it.
type chart struct {
	Name, Title, Desc string
	Width, Height     px
	Left, Right       px
	Ticks             []tick
	Limit             px // a line that means something, 0: none
	Bands             []band
}

// band is one row of a chart.
type band struct {
	Row        *row
	Cell       *viewCell
	Y          px
	Label, Sub string
	Value      string // to the right of the plot
	Empty      string // in the plot, when there is nothing to draw
	Faded      bool   // drawn, but not to be compared
	Hover      string
	Ranges     []span
	Bars       []bar
}

// span is one latency distribution: a thin line to the maximum, a thick one to
// p99, and a shape at every percentile that n supports.
type span struct {
	Class        string
	Y            px
	From, Body   px
	To           px
	Circle       px // p50
	Tick         px // p90
	Diamond      string
	Triangle     string
	Hover        string
	HasBody      bool
	HasCircle    bool
	HasTick      bool
	MaxAt        px
	Top, Bottom  px
	TickT, TickB px
	Reach        px // from p50 to max, at least a finger wide
}

// bar is a rectangle; Broken bars go on beyond the scale.
type bar struct {
	X, Width, Height px
	Y                px
	Class            string
	Broken           bool
	BreakX           px
	Hover            string
}

// latencyChart puts every latency cell on one logarithmic axis.
func (v *view) latencyChart() chart {
	const rowHeight, top = 42.0, 30.0
	c := chart{Name: "latency", Title: "Latency from the due time, logarithmic", Left: chartLeft, Right: chartLeft + chartPlot, Width: chartWidth,
		Desc: "For each setting a line from p50 to the maximum, with marks at p50, p90, p99 and p99.9: end to end above, publish below."}
	low, high := math.Inf(1), math.Inf(-1)
	var cells []*viewCell
	for _, r := range v.rows {
		for _, cell := range r.of(trial.TestLatency) {
			cells = append(cells, cell)
			if l := cell.LatencyMicros; l != nil && measured(cell.Cell) {
				for _, p := range []trial.Percentiles{l.Publish, l.EndToEnd} {
					if p.N > 0 {
						low, high = min(low, float64(max(p.P50, 1))), max(high, float64(max(p.Max, 1)))
					}
				}
			}
		}
	}
	if len(cells) == 0 {
		return c
	}
	if low > high {
		low, high = 100, 1000
	}
	// Ten thousand seconds are the end of the axis, whatever a file claims.
	from, to := math.Floor(math.Log10(min(low, 1e9))), math.Ceil(math.Log10(min(high, 1e10)))
	if from == to {
		to++
	}
	x := func(us int64) px {
		return px(chartLeft + chartPlot*(math.Log10(float64(min(max(us, 1), 1e10)))-from)/(to-from))
	}
	for e := from; e <= to; e++ {
		us := int64(math.Pow(10, e))
		c.Ticks = append(c.Ticks, tick{x(us), decade(us)})
	}
	for i, cell := range cells {
		y := top + rowHeight*float64(i) + 14
		b := v.band(cell, y)
		if l := cell.LatencyMicros; l != nil && measured(cell.Cell) {
			e2e := percentiles(l.EndToEnd)
			b.Faded = cell.Verdict == trial.VerdictSaturated
			b.Value = fmt.Sprintf("p50 %s, p99 %s at %s", e2e[0], e2e[2], rate(cell.RatePerSecond))
			b.Hover = cell.Title()
			b.Ranges = append(b.Ranges, newSpan("e2e", "end to end", l.EndToEnd, y, x))
			if l.Publish.N > 0 {
				b.Ranges = append(b.Ranges, newSpan("publish", "publish", l.Publish, y+13, x))
			}
		} else {
			b.Empty = emptyText(cell)
		}
		c.Bands = append(c.Bands, b)
	}
	c.Height = px(top + rowHeight*float64(len(cells)) + 8)
	return c
}

// decade names a power of ten of microseconds on the axis.
func decade(us int64) string {
	switch {
	case us < 1000:
		return count(us) + " µs"
	case us < 1_000_000:
		return count(us/1000) + " ms"
	}
	return count(us/1_000_000) + " s"
}

func newSpan(class, what string, p trial.Percentiles, y float64, x func(int64) px) span {
	s := span{Class: class, Y: px(y), From: x(p.P50), To: x(p.Max), MaxAt: x(p.Max), Top: px(y - 5), Bottom: px(y + 5), TickT: px(y - 4), TickB: px(y + 4)}
	s.Reach = max(s.To-s.From, 12)
	s.Hover = what + ": "
	for i, q := range percentiles(p) {
		s.Hover += q.Name + " " + q.String() + ", "
		if !q.supported() {
			continue
		}
		at := float64(x(q.Micros))
		switch i {
		case 0:
			s.Circle, s.HasCircle = px(at), true
		case 1:
			s.Tick, s.HasTick = px(at), true
		case 2:
			s.Body, s.HasBody = px(at), true
			s.Diamond = points(at-5.5, y, at, y-5.5, at+5.5, y, at, y+5.5)
		case 3:
			s.Triangle = points(at-5, y+4.5, at, y-5, at+5, y+4.5)
		}
	}
	s.Hover += "n " + count(p.N)
	return s
}

func points(at ...float64) string {
	s := ""
	for i := 0; i+1 < len(at); i += 2 {
		s += px(at[i]).String() + "," + px(at[i+1]).String() + " "
	}
	return s[:len(s)-1]
}

func (v *view) band(c *viewCell, y float64) band {
	r := v.rowOf(c)
	b := band{Row: r, Cell: c, Y: px(y), Label: shorten(r.Setting(), 34)}
	switch {
	case r.Broker.Emulated:
		b.Sub = "emulated"
	case r.Floor():
		b.Sub = "harness floor"
	}
	if c.Verdict == trial.VerdictSaturated || c.Verdict == trial.VerdictContradiction {
		b.Sub = markOf(c.Verdict).Symbol + " " + c.Verdict
	}
	return b
}

func emptyText(c *viewCell) string {
	s := orDash(c.Verdict)
	if why := cmp.Or(reasons(c.Cell), c.Note); why != "" {
		s += ": " + why
	}
	return shorten(s, 92)
}

func shorten(s string, n int) string {
	r := []rune(plain(s))
	if len(r) <= n {
		return string(r)
	}
	return string(r[:n-1]) + "…"
}
