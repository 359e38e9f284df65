package report

import (
	"cmp"
	"fmt"
	"math"

	"queuelab/bench/trial"
)

// throughputChart scales to the fastest broker of the profile: the memory queue would make
// every other bar a dash, and it is no competitor.
func (g group) throughputChart() chart {
	const rowHeight, top = 30.0, 30.0
	c := chart{Name: "throughput-" + g.Slug(), Title: say("Throughput held, messages a second, {0}", g.Short()), Left: chartLeft, Right: chartLeft + chartPlot, Width: chartWidth,
		Desc: say("One bar for each setting. Hatched bars are no competitors: the harness floor, and emulated brokers.")}
	most, fallback := 0.0, 0.0
	var cells []*viewCell
	for _, r := range g.Rows {
		for _, cell := range r.of(trial.TestThroughput) {
			cells = append(cells, cell)
			if measured(cell.Cell) {
				fallback = max(fallback, cell.RatePerSecond)
				if !r.Unranked() {
					most = max(most, cell.RatePerSecond)
				}
			}
		}
	}
	if len(cells) == 0 {
		return c
	}
	step, scale := niceScale(cmp.Or(most, fallback, 1))
	for t := 0.0; t <= scale*1.0001; t += step {
		c.Ticks = append(c.Ticks, tick{px(chartLeft + chartPlot*t/scale), rateTick(t)})
	}
	for i, cell := range cells {
		y := top + rowHeight*float64(i) + 12
		b := g.band(cell, y)
		if measured(cell.Cell) && cell.RatePerSecond > 0 {
			width := chartPlot * cell.RatePerSecond / scale
			s := bar{X: chartLeft, Y: px(y - 8), Height: 16, Class: "rate", Hover: say("{0}: {1}, {2}", cell.Title(), rateField(cell).Text, trialsText(cell))}
			if b.Row.Unranked() {
				s.Class = "unranked"
			}
			if width > chartPlot {
				width, s.Broken, s.BreakX = chartPlot, true, chartLeft+chartPlot-28
			}
			s.Width = px(width)
			b.Bars, b.Value = []bar{s}, rateField(cell).Text
			if s.Broken {
				b.Value = say("{0}, beyond the scale", b.Value)
			}
		} else {
			b.Empty = emptyText(cell)
		}
		c.Bands = append(c.Bands, b)
	}
	c.Height = px(top + rowHeight*float64(len(cells)) + 8)
	return c
}

func rateTick(t float64) string {
	if t == 0 {
		return "0"
	}
	if t < 1000 {
		return brief(t)
	}
	return brief(t/1000) + " k"
}

// niceScale gives 3 to 6 round steps up to at least most.
func niceScale(most float64) (step, scale float64) {
	most = min(max(most, 0.001), 1e15) // a file may claim anything
	unit := math.Pow(10, math.Floor(math.Log10(most)))
	for _, f := range []float64{0.2, 0.5, 1, 2} {
		if step = unit * f; most/step <= 6 {
			break
		}
	}
	return step, step * math.Ceil(most/step)
}

// saleChart shows units sold in per cent of the stock, and beyond it in red.
func (g group) saleChart() chart {
	const rowHeight, top, whole = 32.0, 30.0, 0.87
	c := chart{Name: "sale-" + g.Slug(), Title: say("Units sold, in per cent of the stock, {0}", g.Short()), Left: chartLeft, Right: chartLeft + chartPlot, Width: chartWidth, Limit: chartLeft + chartPlot*whole,
		Desc: say("One bar for each setting and fault: sold, left over (undersold), and beyond the line what was sold without stock (oversold).")}
	for _, t := range []int{0, 25, 50, 75, 100} {
		c.Ticks = append(c.Ticks, tick{px(chartLeft + chartPlot*whole*float64(t)/100), fmt.Sprintf("%d %%", t)})
	}
	i := 0
	for _, r := range g.Rows {
		for _, cell := range r.of(trial.TestSale) {
			y := top + rowHeight*float64(i) + 12
			i++
			b := g.band(cell, y)
			b.Sub = within(join(comma(), faultTitle(cell.Fault), b.Sub), 34)
			if s := cell.Sale; s != nil && measured(cell.Cell) && s.Stock > 0 {
				b.Bars, b.Value = saleBars(s, y, chartPlot*whole), saleText(cell, true, false).Text
			} else {
				b.Empty = emptyText(cell)
			}
			c.Bands = append(c.Bands, b)
		}
	}
	c.Height = px(top + rowHeight*float64(i) + 8)
	return c
}

func saleBars(s *trial.Sale, y, full float64) []bar {
	share := func(n int) float64 { return full * float64(max(n, 0)) / float64(s.Stock) }
	within := min(share(s.Sold), full)
	bars := []bar{{X: chartLeft, Y: px(y - 8), Width: px(within), Height: 16, Class: "sold", Hover: many(int64(s.Sold), "{0} unit sold", "{0} units sold", raw(count(int64(s.Sold))))}}
	if left := full - within; left > 0.05 {
		bars = append(bars, bar{X: px(chartLeft + within), Y: px(y - 8), Width: px(left), Height: 16, Class: "left", Hover: many(int64(s.Stock-s.Sold), "{0} unit left over", "{0} units left over", raw(count(int64(s.Stock-s.Sold))))})
	}
	if s.Oversold > 0 {
		// Never less than a sliver: one unit oversold must be seen.
		over := min(max(share(s.Oversold), 4), chartPlot-full)
		bars = append(bars, bar{X: px(chartLeft + full), Y: px(y - 8), Width: px(over), Height: 16, Class: "over", Hover: many(int64(s.Oversold), "{0} unit oversold", "{0} units oversold", raw(count(int64(s.Oversold))))})
	}
	return bars
}
