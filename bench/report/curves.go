package report

import (
	"fmt"
	"math"
	"strconv"

	"queuelab/bench/trial"
)

// curvePoint is one point of a percentile curve with the figures behind it.
type curvePoint struct {
	Q             float64
	Value, Uncorr figure
	HasUncorr     bool
}

// curveOf is the distribution of a cell end to end: the recorded curve, or in
// results from before there was one, the percentiles.
func curveOf(c *viewCell) []curvePoint {
	var out []curvePoint
	uncorrected := c.LatencyMicros != nil && c.LatencyMicros.FromSend != nil && c.LatencyMicros.FromSend.EndToEnd.N > 0
	last := -1.0
	for i, p := range c.Curve {
		if !(p.Q >= 0 && p.Q < 1) || p.Q <= last || p.EndToEnd < 0 {
			continue
		}
		last = p.Q
		src := c.path("curve[" + strconv.Itoa(i) + "].")
		point := curvePoint{Q: p.Q, Value: fig(asMicros, p.EndToEnd, src+"endToEnd")}
		if p.EndToEndFromSend > 0 || uncorrected {
			point.Uncorr, point.HasUncorr = fig(asMicros, p.EndToEndFromSend, src+"endToEndFromSend"), true
		}
		out = append(out, point)
	}
	if len(out) > 0 || c.LatencyMicros == nil {
		return out
	}
	for i, q := range percentiles(c.LatencyMicros.EndToEnd)[:4] {
		if !q.supported() || q.N <= 0 {
			continue
		}
		point := curvePoint{Q: []float64{0.5, 0.9, 0.99, 0.999}[i], Value: fig(asMicros, q.Micros, c.path("latencyMicros.endToEnd."+q.Key))}
		if uncorrected {
			g := percentiles(c.LatencyMicros.FromSend.EndToEnd)[i]
			point.Uncorr, point.HasUncorr = fig(asMicros, g.Micros, c.path("latencyMicros.fromSend.endToEnd."+g.Key)), true
		}
		out = append(out, point)
	}
	return out
}

// nines is a quantile's place on the axis: each nine is one step.
func nines(q float64) float64 { return math.Log10(1 / (1 - q)) }

// curvesPlot is the latency percentile curves of a profile.
func (g group) curvesPlot() plot {
	p := plot{Name: "curves-" + g.Slug(), Title: say("End-to-end latency by percentile, {0}", g.Short()),
		Desc:  say("From left to right one more nine each step; logarithmic. The grey dashes are the same messages counted from the actual send: what a stall hides from a careless clock."),
		XName: say("share of the messages at or below"), YName: say("end to end, from due")}
	low, high, most := math.Inf(1), math.Inf(-1), 2.0
	var cells []*viewCell
	for _, r := range g.Rows {
		drawn := false
		for _, c := range r.of(trial.TestLatency) {
			points := curveOf(c)
			if !measured(c.Cell) || len(points) < 2 || drawn {
				continue
			}
			drawn = true
			cells = append(cells, c)
			for _, q := range points {
				low, high, most = min(low, max(q.Value.Float(), 1)), max(high, q.Value.Float(), 1), max(most, nines(q.Q))
				if q.HasUncorr {
					low = min(low, max(q.Uncorr.Float(), 1))
				}
			}
		}
		if !drawn && len(r.of(trial.TestLatency)) > 0 {
			p.Missing = append(p.Missing, missing(r, trial.TestLatency))
		}
	}
	if len(cells) == 0 {
		return p
	}
	y, ticks := microsAxis(low, high)
	x := axis{from: 0, to: min(math.Ceil(most-0.05), 9), start: plotLeft, end: plotRight}
	p.Y = ticks
	p.X = append(p.X, tick{px(x.at(0)), "0 %"}, tick{px(x.at(nines(0.5))), "50 %"})
	for n := 1.0; n <= x.to; n++ {
		p.X = append(p.X, tick{px(x.at(n)), strconv.FormatFloat(100*(1-math.Pow(10, -n)), 'f', max(int(n)-2, 0), 64) + " %"})
	}
	for i, c := range cells {
		p.Series = append(p.Series, curveSeries(c, g.rowOf(c), i, x, y))
	}
	p.legend()
	return p
}

func curveSeries(c *viewCell, r *row, kind int, x, y axis) series {
	s := series{Class: lineClass(kind, r), Label: shorten(r.Setting(), 30), ID: c.ID}
	var main, grey trace
	points := curveOf(c)
	marked := markedPoints(points)
	for i, q := range points {
		px0, v := x.at(nines(q.Q)), q.Value.Float()
		main.to(px0, y.at(v))
		if q.HasUncorr {
			grey.to(px0, y.at(q.Uncorr.Float()))
			s.HasGrey = true
		}
		d := dot{Class: "small", Shape: "M" + at(px0-2, y.at(v)) + "h4", Figure: q.Value, X: px(px0), Y: px(y.at(v)),
			Hover: raw(fmt.Sprintf("%s, p%s: %s", r.Setting(), strconv.FormatFloat(100*q.Q, 'f', -1, 64), q.Value))}
		if q.HasUncorr {
			d.Hover = say("{0}; from send {1}", d.Hover, raw(q.Uncorr.String()))
		}
		if marked[i] {
			d.Class, d.Shape = "mark", shape(s.Class, px0, y.at(v))
		}
		s.Dots = append(s.Dots, d)
	}
	s.Path, s.Grey = main.String(), grey.String()
	if l := c.LatencyMicros; l != nil {
		s.Note = say("p99 {0}", quantile(percentiles(l.EndToEnd)[2], c.path("latencyMicros.endToEnd")))
	}
	return s
}

// markedPoints are those that carry the shape of their line: nearest to the
// quantiles that people name. A recorded curve seldom has just those.
func markedPoints(points []curvePoint) map[int]bool {
	marked := map[int]bool{}
	for _, named := range []float64{0.5, 0.9, 0.99, 0.999, 0.9999} {
		best, off := -1, 0.2
		for i, p := range points {
			if d := math.Abs(nines(p.Q) - nines(named)); d < off {
				best, off = i, d
			}
		}
		marked[best] = best >= 0
	}
	return marked
}

func (g group) rowOf(c *viewCell) *row {
	for _, r := range g.Rows {
		for _, other := range r.cells {
			if other == c {
				return r
			}
		}
	}
	return &row{Backend: c.Backend, Name: c.Setting}
}
