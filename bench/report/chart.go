package report

import (
	"math"
	"strconv"
	"strings"

	terminal "github.com/jedib0t/go-pretty/v6/text"

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

// tick is a place on an axis, which is no figure of the result.
type tick struct {
	At   px
	Text string
}

// chart is a picture with one band a row; the template draws it.
type chart struct {
	Name          string
	Title, Desc   text
	Width, Height px
	Left, Right   px
	Ticks         []tick
	Limit         px // a line that means something, 0: none
	Bands         []band
}

// band is one row of a chart.
type band struct {
	Row    *row
	Cell   *viewCell
	Y      px
	Label  string
	Sub    text
	Value  text // to the right of the plot
	Empty  text // in the plot, when there is nothing to draw
	Faded  bool // drawn, but not to be compared
	Ranges []span
	Bars   []bar
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
	Hover        text
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
	Hover            text
}

// latencyChart puts every latency cell of a profile on one logarithmic axis.
func (g group) latencyChart() chart {
	const rowHeight, top = 42.0, 30.0
	c := chart{Name: "latency-" + g.Slug(), Title: say("Latency from the due time, logarithmic, {0}", g.Short()), Left: chartLeft, Right: chartLeft + chartPlot, Width: chartWidth,
		Desc: say("For each setting a line from p50 to the maximum, with marks at p50, p90, p99 and p99.9: end to end above, the response below.")}
	low, high := math.Inf(1), math.Inf(-1)
	var cells []*viewCell
	for _, r := range g.Rows {
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
		b := g.band(cell, y)
		if l := cell.LatencyMicros; l != nil && measured(cell.Cell) {
			e2e := percentiles(l.EndToEnd)
			b.Faded = cell.Verdict == trial.VerdictSaturated
			src := cell.path("latencyMicros.endToEnd")
			b.Value = say("p50 {0}, p99 {1} at {2}", quantile(e2e[0], src), quantile(e2e[2], src), rateField(cell).Text)
			b.Ranges = append(b.Ranges, newSpan("e2e", say("end to end"), l.EndToEnd, y, x))
			if l.Publish.N > 0 {
				b.Ranges = append(b.Ranges, newSpan("publish", say("response"), l.Publish, y+13, x))
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

func newSpan(class string, what text, p trial.Percentiles, y float64, x func(int64) px) span {
	s := span{Class: class, Y: px(y), From: x(p.P50), To: x(p.Max), MaxAt: x(p.Max), Top: px(y - 5), Bottom: px(y + 5), TickT: px(y - 4), TickB: px(y + 4)}
	s.Reach = max(s.To-s.From, 12)
	var parts []text
	for i, q := range percentiles(p) {
		parts = append(parts, raw(q.Name+" "+q.String()))
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
	s.Hover = join(colon(), what, join(comma(), append(parts, raw("n "+count(p.N)))...))
	return s
}

func points(at ...float64) string {
	s := ""
	for i := 0; i+1 < len(at); i += 2 {
		s += px(at[i]).String() + "," + px(at[i+1]).String() + " "
	}
	return s[:len(s)-1]
}

func (g group) band(c *viewCell, y float64) band {
	r := g.rowOf(c)
	b := band{Row: r, Cell: c, Y: px(y), Label: shorten(r.Setting(), 29)}
	switch {
	case r.Broker.Emulated:
		b.Sub = say("emulated")
	case r.Floor():
		b.Sub = say("harness floor")
	}
	if c.Verdict == trial.VerdictSaturated || c.Verdict == trial.VerdictContradiction {
		b.Sub = say("{0} {1}", raw(markOf(c.Verdict).Symbol), term(c.Verdict))
	} else if c.Noisy != "" {
		b.Sub = say("NOISY, not ranked")
	}
	b.Sub = within(b.Sub, 34)
	return b
}

func emptyText(c *viewCell) text {
	return within(join(colon(), term(orDash(c.Verdict)), why(c)), 88)
}

// shorten cuts a foreign string to n columns, of which Chinese takes two.
func shorten(s string, n int) string {
	s = plain(s)
	if terminal.StringWidth(s) <= n {
		return s
	}
	var b strings.Builder
	used := 0
	for _, r := range s {
		if used += terminal.RuneWidth(r); used > n-1 {
			break
		}
		b.WriteRune(r)
	}
	return b.String() + "…"
}

// within is a text cut to n columns in each language.
func within(t text, n int) text {
	if terminal.StringWidth(plain(t.String())) > n {
		t.en = quote(shorten(t.String(), n)).en
	}
	if terminal.StringWidth(plain(t.Chinese())) > n {
		t.zh = quote(shorten(t.Chinese(), n)).zh
	}
	return t
}
