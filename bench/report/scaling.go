package report

import (
	"math"
	"slices"
	"strconv"

	"queuelab/bench/trial"
)

// dimension is what a scaling test varies.
type dimension struct {
	Test        string
	Name, Title text
}

func dimensions() []dimension {
	return []dimension{
		{trial.TestScalingConsumers, say("consumers"), say("Throughput by consumers")},
		{trial.TestScalingConnections, say("connections"), say("Throughput by connections")},
		{trial.TestScalingPayload, say("payload, bytes"), say("Throughput by payload")},
		{trial.TestScalingBatch, say("messages in a batch"), say("Throughput by batch")},
	}
}

// scalingPlot is a profile's throughput along one dimension. The floor is left
// out: its line would press all others to the ground.
func (g group) scalingPlot(d dimension) plot {
	p := plot{Name: d.Test + "-" + g.Slug(), Title: say("{0}, {1}", d.Title, g.Short()), XName: d.Name, YName: say("held, messages a second"),
		Desc: say("Each point is the median of its trials; the upright line is its 95 % interval.")}
	var cells []*viewCell
	var values []int
	most := 0.0
	for _, r := range g.competitors() {
		for _, c := range r.of(d.Test) {
			if !measured(c.Cell) || len(c.Scaling) == 0 {
				continue
			}
			cells = append(cells, c)
			for _, s := range c.Scaling {
				if s.Value > 0 && s.Rate.N > 0 {
					most = max(most, s.Rate.Median, s.Rate.High)
					if !slices.Contains(values, s.Value) {
						values = append(values, s.Value)
					}
				}
			}
		}
	}
	if len(values) == 0 {
		return p
	}
	slices.Sort(values)
	y, yTicks := rateAxis(most, plotBottom, plotTop)
	x := axis{from: math.Log10(float64(values[0])), to: math.Log10(float64(values[len(values)-1])), start: plotLeft + 20, end: plotRight - 20, log: true}
	p.Y = yTicks
	last := math.Inf(-1)
	for _, v := range values {
		if at := x.at(float64(v)); at-last > 44 {
			p.X = append(p.X, tick{px(at), count(int64(v))})
			last = at
		}
	}
	for i, c := range cells {
		r := g.rowOf(c)
		s := series{Class: lineClass(i, r), Label: shorten(r.Setting(), 40), ID: c.ID}
		var main trace
		for k, point := range c.Scaling {
			if point.Value <= 0 || point.Rate.N <= 0 {
				continue
			}
			f := fig(asRate, point.Rate.Median, c.path("scaling["+strconv.Itoa(k)+"].rate.median"))
			at, up := x.at(float64(point.Value)), y.at(point.Rate.Median)
			main.to(at, up)
			s.Whiskers = append(s.Whiskers, whisker{px(at), px(y.at(point.Rate.Low)), px(y.at(point.Rate.High))})
			s.Dots = append(s.Dots, dot{Class: "mark", Shape: shape(s.Class, at, up), Figure: f, X: px(at), Y: px(up),
				Hover: say("{0} at {1}: {2}", r.Setting(), raw(count(int64(point.Value))), raw(f.String()))})
		}
		s.Path = main.String()
		p.Series = append(p.Series, s)
	}
	p.legend()
	return p
}

// scalingGrid is every point of every scaling cell.
func (v *view) scalingGrid() grid {
	g := grid{Name: "scaling", Title: say("Throughput along one dimension, closed loop"), Columns: []column{
		col("setting", false), col("varied", false), col("value", true), col("held, median", true), col("95 % interval", true), col("n", true), col(note, false),
	}}
	for _, r := range v.rows {
		for _, d := range dimensions() {
			for _, c := range r.of(d.Test) {
				if !measured(c.Cell) {
					continue
				}
				for i, s := range c.Scaling {
					src := c.path("scaling[" + strconv.Itoa(i) + "].")
					fields := []field{settingField(r), {Text: d.Name}, number(fig(asCount, s.Value, src+"value"), c.ID), nothing(), nothing(), number(fig(asCount, s.Rate.N, src+"rate.n"), ""), {Text: harness(s.Reason)}}
					if s.Rate.N > 0 {
						fields[3] = number(fig(asRate, s.Rate.Median, src+"rate.median"), c.ID)
						fields[4] = field{Text: between(asRate, src+"rate", s.Rate)}
						if s.Rate.N < fewestTrials {
							fields[4].Sub = []text{say("only least and greatest")}
						}
					}
					g.Lines = append(g.Lines, line{Row: r, Cell: c, Apart: r.Unranked(), Fields: fields})
				}
			}
		}
	}
	return g
}
