package report

import (
	"math"
	"regexp"
	"strconv"
	"time"

	"queuelab/bench/trial"
)

// promisedLatency is the end-to-end bound of a promise such as "p99<20ms,lost=0":
// which percentile, and how many microseconds.
func promisedLatency(promise string) (key string, us float64, ok bool) {
	m := regexp.MustCompile(`(?:^|,)\s*(p50|p90|p99\.9|p999|p99|max)\s*<=?\s*([0-9.]+(?:ns|us|µs|ms|s|m))`).FindStringSubmatch(promise)
	if m == nil {
		return "p99", 0, false
	}
	d, err := time.ParseDuration(m[2])
	if err != nil || d <= 0 {
		return "p99", 0, false
	}
	key = m[1]
	if key == "p99.9" {
		key = "p999"
	}
	return key, float64(d) / 1e3, true
}

// atKey is a percentile by its name in the result.
func atKey(p trial.Percentiles, key string) int64 {
	switch key {
	case "p50":
		return p.P50
	case "p90":
		return p.P90
	case "p999":
		return p.P999
	case "max":
		return p.Max
	}
	return p.P99
}

// promised lists the cells of a group that searched for the highest rate.
func (g group) promised() []*viewCell {
	var out []*viewCell
	for _, r := range g.Rows {
		for _, c := range r.cells {
			if c.SLO != nil && measured(c.Cell) {
				out = append(out, c)
			}
		}
	}
	return out
}

// ratesPlot is the rate-latency curves of a profile, with the promise. The
// crosses are rates at which it was not kept.
func (g group) ratesPlot() plot {
	p := plot{Name: "rates-" + g.Slug(), Title: say("Latency by rate, {0}", g.Short()),
		Desc:  say("Each point is one rate, held for a while. The dashed line is the promise; a cross is a rate at which it was not kept; the upright marks are the highest rates that were."),
		XName: say("messages a second, offered")}
	low, high, most := math.Inf(1), math.Inf(-1), 0.0
	cells := g.promised()
	key, limit, has := "p99", 0.0, false
	for _, c := range cells {
		if k, us, ok := promisedLatency(c.SLO.Promise); ok && !has {
			key, limit, has = k, us, true
		}
		for _, q := range c.SLO.Curve {
			if q.LatencyMicros == nil || !(q.Offered > 0) || math.IsInf(q.Offered, 0) {
				continue
			}
			v := float64(max(atKey(q.LatencyMicros.EndToEnd, key), 1))
			low, high = min(low, v), max(high, v)
			if !g.rowOf(c).Unranked() {
				most = max(most, q.Offered)
			}
		}
	}
	if len(cells) == 0 || low > high {
		return p
	}
	if most == 0 {
		for _, c := range cells {
			for _, q := range c.SLO.Curve {
				most = max(most, q.Offered)
			}
		}
	}
	if has {
		low, high = min(low, limit), max(high, limit)
	}
	y, yTicks := microsAxis(low, high)
	x, xTicks := rateAxis(most, plotLeft, plotRight)
	p.X, p.Y, p.YName = xTicks, yTicks, say("end to end {0}, from due", raw(key))
	if has {
		at := px(y.at(limit))
		p.Rules = append(p.Rules, rule{X1: plotLeft, X2: plotRight, Y1: at, Y2: at, TX: plotLeft + 6, TY: at - 5, Anchor: "start", Class: "promise", Text: say("promise: {0}", cells[0].SLO.Promise)})
	}
	for i, c := range cells {
		s := rateSeries(c, g.rowOf(c), i, key, x, y)
		p.Series = append(p.Series, s)
		if h := c.SLO.HighestRate; h > 0 && h <= x.to {
			at := px(x.at(h))
			p.Rules = append(p.Rules, rule{X1: at, X2: at, Y1: plotBottom - 14, Y2: plotBottom, Class: "highest " + s.Class})
		}
	}
	p.legend()
	return p
}

func rateSeries(c *viewCell, r *row, i int, key string, x, y axis) series {
	s := series{Class: lineClass(i, r), Label: shorten(r.Setting(), 26), ID: c.ID, Note: highest(c)}
	var main trace
	for k, q := range c.SLO.Curve {
		if q.LatencyMicros == nil || !(q.Offered > 0) || q.Offered > x.to {
			continue
		}
		src := c.path("slo.curve[" + strconv.Itoa(k) + "].latencyMicros.endToEnd." + key)
		v := fig(asMicros, atKey(q.LatencyMicros.EndToEnd, key), src)
		at, up := x.at(q.Offered), y.at(v.Float())
		main.to(at, up)
		d := dot{Class: "mark", Shape: shape(s.Class, at, up), Figure: v, X: px(at), Y: px(up), Hover: say("{0} at {1}: {2}", r.Setting(), raw(rate(q.Offered)), raw(v.String()))}
		if !q.Kept {
			d.Class, d.Shape = "broken", cross(at, up)
			d.Hover = say("{0}, not kept: {1}", d.Hover, harness(q.Why))
		}
		s.Dots = append(s.Dots, d)
	}
	s.Path = main.String()
	return s
}

func highest(c *viewCell) text {
	if c.SLO.HighestRate <= 0 {
		return say("kept at no rate")
	}
	return say("up to {0}", fig(asRate, c.SLO.HighestRate, c.path("slo.highestRate")))
}

// promiseGrid is the highest rate of each setting, and what it was like there.
func (v *view) promiseGrid() grid {
	g := grid{Name: "promise", Title: say("The highest rate at a promise"), Columns: []column{
		col("setting", false), col("promise", false), col("highest rate", true), col("end to end p50", true), col("p99", true), col("from send p99", true), col("the search ended", false),
	}}
	g.Columns[5].Grey = true
	for _, r := range v.rows {
		for _, c := range r.cells {
			if c.SLO == nil || !measured(c.Cell) {
				continue
			}
			fields := []field{settingField(r), {Text: quote(c.SLO.Promise)}, {Text: highest(c), Sort: c.SLO.HighestRate, HasNum: true, ID: c.ID}, nothing(), nothing(), nothing(), {Text: harness(c.SLO.Limit)}}
			for i, q := range c.SLO.Curve {
				if q.Kept && q.Offered == c.SLO.HighestRate && q.LatencyMicros != nil {
					copy(fields[3:6], rateFields(q, c.path("slo.curve["+strconv.Itoa(i)+"].latencyMicros.")))
				}
			}
			g.Lines = append(g.Lines, line{Row: r, Cell: c, Apart: r.Unranked(), Fields: fields})
		}
	}
	return g
}

// rateFields are p50, p99, and the uncorrected p99 of one rate.
func rateFields(q trial.RatePoint, src string) []field {
	e2e := percentiles(q.LatencyMicros.EndToEnd)
	fields := []field{words(quantile(e2e[0], src+"endToEnd")), words(quantile(e2e[2], src+"endToEnd")), nothing()}
	if from := q.LatencyMicros.FromSend; from != nil {
		fields[2] = words(quantile(percentiles(from.EndToEnd)[2], src+"fromSend.endToEnd"))
	}
	return fields
}

// ratesGrid is every rate that was tried.
func (v *view) ratesGrid() grid {
	g := grid{Name: "rates", Title: say("Every rate that was tried"), Columns: []column{
		col("setting", false), col("offered", true), col("achieved", true), col("end to end p50", true), col("p99", true), col("from send p99", true), col("lost", true), col("kept", false),
	}}
	g.Columns[5].Grey = true
	for _, r := range v.rows {
		for _, c := range r.cells {
			if c.SLO == nil || !measured(c.Cell) {
				continue
			}
			for i, q := range c.SLO.Curve {
				at := c.path("slo.curve[" + strconv.Itoa(i) + "].")
				fields := []field{settingField(r), number(fig(asRate, q.Offered, at+"offered"), c.ID), number(fig(asRate, q.Achieved, at+"achieved"), ""), nothing(), nothing(), nothing(),
					number(fig(asCount, q.Lost, at+"lost"), ""), {Text: say("✓ kept")}}
				if !q.Kept {
					fields[7] = field{Text: say("✗ not kept: {0}", harness(q.Why))}
				}
				if q.LatencyMicros != nil {
					copy(fields[3:6], rateFields(q, at+"latencyMicros."))
				}
				g.Lines = append(g.Lines, line{Row: r, Cell: c, Apart: r.Unranked(), Fields: fields})
			}
		}
	}
	return g
}
