package report

import (
	"queuelab/bench/trial"
)

// resourcesGrid is what a million messages took, from every cell that counted.
func (v *view) resourcesGrid() grid {
	g := grid{Name: "cost", Title: say("What a million delivered messages cost"), Columns: []column{
		col("setting", false), col("test", false), col("client CPU", true), col("broker CPU", true), col("client memory", true), col("broker memory", true), col("broker disk", true), col(note, false),
	}}
	for _, r := range v.rows {
		for _, c := range r.cells {
			k := c.Cost
			if k == nil || !measured(c.Cell) {
				continue
			}
			seconds := func(name string, n float64) field { return number(fig(asSeconds, n, c.path("cost."+name)), c.ID) }
			size := func(name string, n int64) field { return number(fig(asBytes, n, c.path("cost."+name)), c.ID) }
			fields := []field{settingField(r), words(testTitle(c)), seconds("clientCpuSeconds", k.ClientCPUSeconds), nothing(), size("clientMemoryBytes", k.ClientMemoryBytes), nothing(), nothing()}
			because := text{}
			switch {
			case k.BrokerKnown:
				fields[3], fields[5], fields[6] = seconds("brokerCpuSeconds", k.BrokerCPUSeconds), size("brokerMemoryBytes", k.BrokerMemoryBytes), size("brokerDiskBytes", k.BrokerDiskBytes)
			case r.Floor():
				because = say("there is no broker")
			default:
				because = say("the broker runs elsewhere: its part is unknown")
			}
			for i, metric := range []string{"cost.clientCpuSeconds", "cost.brokerCpuSeconds"} {
				if in := c.interval(metric); in != nil && fields[2+i].HasNum {
					fields[2+i].Sub = []text{between(asSeconds, c.path(`spread["`+metric+`"]`), *in)}
				}
			}
			g.Lines = append(g.Lines, line{Row: r, Cell: c, Fields: append(fields, field{Text: or(because, raw(""))}), Apart: r.Unranked()})
		}
	}
	return g.unless(note)
}

// clicksGrid is the sale in the buyer's time: from the click to the answer, and
// to the order's row.
func (v *view) clicksGrid() grid {
	g := grid{Name: "clicks", Title: say("The sale in the buyer's time, from the click"), Columns: []column{
		col("setting", false), col("fault", false), col("answer p50", true), col("answer p99", true), col("answer max", true),
		col("committed p50", true), col("committed p99", true), col("committed max", true), col("n", true),
	}}
	for _, r := range v.rows {
		for _, c := range r.of(trial.TestSale) {
			s := c.Sale
			if s == nil || !measured(c.Cell) || s.AnswerMicros == nil && s.CommittedMicros == nil {
				continue
			}
			fields := []field{settingField(r), words(faultTitle(c.Fault))}
			n := nothing()
			for _, stage := range []struct {
				path, metric string
				p            *trial.Percentiles
			}{{"sale.answerMicros", "sale.answer.p99", s.AnswerMicros}, {"sale.committedMicros", "sale.committed.p99", s.CommittedMicros}} {
				if stage.p == nil {
					fields = append(fields, nothing(), nothing(), nothing())
					continue
				}
				all := percentiles(*stage.p)
				p99 := percentileField(all[2], c, stage.path)
				if in := c.interval(stage.metric); in != nil {
					p99.Sub = []text{between(asMicros, c.path(`spread["`+stage.metric+`"]`), *in)}
				}
				fields = append(fields, percentileField(all[0], c, stage.path), p99, percentileField(all[4], c, stage.path))
				n = number(c.count(stage.path+".n", stage.p.N), c.ID)
			}
			g.Lines = append(g.Lines, line{Row: r, Cell: c, Fields: append(fields, n), Apart: r.Unranked()})
		}
	}
	return g
}

// stagesGrid is every stage of a message of the latency cells, and how late the
// generator itself was.
func (v *view) stagesGrid() grid {
	g := grid{Name: "stages", Title: say("Each stage, from the due time: p50 / p99"), Columns: []column{
		col("setting", false), col("sent (lateness)", true), col("accepted (response)", true), col("delivered (end to end)", true), col("effect committed", true), col("acked", true),
	}}
	for _, r := range v.rows {
		for _, c := range r.of(trial.TestLatency) {
			l := c.LatencyMicros
			if l == nil || !measured(c.Cell) || l.Lateness == nil && l.Effect == nil && l.Acked == nil {
				continue
			}
			fields := []field{settingField(r)}
			for _, stage := range []struct {
				path string
				p    *trial.Percentiles
			}{{"lateness", l.Lateness}, {"publish", &l.Publish}, {"endToEnd", &l.EndToEnd}, {"effect", l.Effect}, {"acked", l.Acked}} {
				if stage.p == nil {
					fields = append(fields, nothing())
					continue
				}
				all := percentiles(*stage.p)
				src := c.path("latencyMicros." + stage.path)
				f := field{Text: say("{0} / {1}", quantile(all[0], src), quantile(all[2], src)), ID: c.ID}
				if all[2].supported() {
					f.Sort, f.HasNum = float64(all[2].Micros), true
				}
				fields = append(fields, f)
			}
			g.Lines = append(g.Lines, line{Row: r, Cell: c, Fields: fields, Apart: r.Unranked()})
		}
	}
	return g.unless("effect committed")
}

// testTitle is a cell's test, and its fault where it has one.
func testTitle(c *viewCell) text {
	if c.Fault == trial.FaultNone || c.Fault == "" {
		return term(orDash(c.Test))
	}
	return join(comma(), term(orDash(c.Test)), faultTitle(c.Fault))
}
