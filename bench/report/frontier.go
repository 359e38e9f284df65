package report

import (
	"math"

	"queuelab/bench/trial"
)

// frontierPlot is what durability costs: each setting's p99 against how far back
// its losses reach, when only the broker's process is killed and when the power
// goes. Where there is no latency of the same run there is no picture.
func (v *view) frontierPlot() plot {
	p := plot{Name: "frontier", Title: say("The price of durability"),
		Desc:  say("To the right is slower, up is worse: how old the oldest lost message was. The lower mark of a setting is a killed broker, the upper one a power cut; one mark means that both lose the same."),
		XName: say("end to end p99, from due"), YName: say("oldest loss before the fault")}
	type point struct {
		r           *row
		latency     *viewCell
		kill, power *viewCell
	}
	var points []point
	low, high, most := math.Inf(1), math.Inf(-1), 10.0
	for _, r := range v.rows {
		q := point{r: r, kill: r.find(trial.TestFault, trial.FaultBrokerKill), power: r.find(trial.TestFault, powerLoss)}
		for _, c := range r.of(trial.TestLatency) {
			if measured(c.Cell) && c.LatencyMicros != nil {
				q.latency = c
			}
		}
		if q.latency == nil || q.power == nil || !measured(q.power.Cell) || q.power.Valid == 0 {
			continue
		}
		points = append(points, q)
		us := float64(max(1, q.latency.LatencyMicros.EndToEnd.P99))
		low, high = min(low, us), max(high, us)
		for _, c := range []*viewCell{q.kill, q.power} {
			most = max(most, oldestLoss(c))
		}
	}
	if len(points) == 0 {
		return p
	}
	x := axis{from: math.Floor(math.Log10(low)), to: math.Ceil(math.Log10(high)), start: plotLeft + 20, end: plotRight - 20, log: true}
	if x.to <= x.from {
		x.to = x.from + 1
	}
	for e := x.from; e <= x.to; e++ {
		p.X = append(p.X, tick{px(x.at(math.Pow(10, e))), decade(int64(math.Pow(10, e)))})
	}
	// A millisecond and less is the floor of the axis, where nothing is lost.
	y := axis{from: 0, to: math.Ceil(math.Log10(most)), start: plotBottom, end: plotTop, log: true}
	p.Y = append(p.Y, tick{px(y.at(1)), "0"})
	for e := 1.0; e <= y.to; e++ {
		p.Y = append(p.Y, tick{px(y.at(math.Pow(10, e))), decade(int64(math.Pow(10, e+3)))})
	}
	for i, q := range points {
		s := series{Class: lineClass(i, q.r), Label: shorten(q.r.Setting(), 40), ID: q.power.ID}
		at := x.at(float64(max(1, q.latency.LatencyMicros.EndToEnd.P99)))
		var line trace
		for _, c := range []*viewCell{q.kill, q.power} {
			if c == nil || !measured(c.Cell) || c.Valid == 0 {
				continue
			}
			up := y.at(max(1, oldestLoss(c)))
			line.to(at, up)
			s.Dots = append(s.Dots, dot{Class: "mark", Shape: shape(s.Class, at, up), Figure: lossFigure(c), X: px(at), Y: px(up),
				Hover: say("{0}, {1}: oldest loss {2}", q.r.Setting(), faultTitle(c.Fault), lossFigure(c))})
		}
		s.Path = line.String()
		p.Series = append(p.Series, s)
	}
	p.legend()
	return p
}

func oldestLoss(c *viewCell) float64 {
	if c == nil || c.LossWindowMillis == nil {
		return 0
	}
	return float64(c.LossWindowMillis.Max)
}

// lossFigure is the oldest loss, or the count of lost messages where there was none.
func lossFigure(c *viewCell) figure {
	if c.LossWindowMillis != nil {
		return fig(asMillis, c.LossWindowMillis.Max, c.path("lossWindowMillis.max"))
	}
	return c.count("lost", c.Lost)
}
