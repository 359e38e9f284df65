package report

import (
	"fmt"
	"strconv"

	"queuelab/bench/trial"
)

// runsGrid is every trial of a cell, the invalid ones too.
func runsGrid(c *viewCell) grid {
	g := grid{Name: "runs-" + c.ID, Title: say("Every trial of {0}", c.Title()), Columns: []column{
		col("trial", true), col("order in the run", true), col("seed", true), col("sent", true), col("lost", true), col("again", true), col("rate", true),
		col("response p99", true), col("end to end p50", true), col("p99", true), col("from send p99", true), col("recovery", true), col("sold", true), col("state", false),
	}}
	for i := range c.Runs {
		t := &c.Runs[i]
		at := func(rest string) string { return c.path("runs[" + strconv.Itoa(i) + "]." + rest) }
		id := fmt.Sprintf("%s.trial-%d", c.ID, i+1)
		fields := []field{
			number(fig(asInteger, t.N, at("n")), id), number(fig(asInteger, t.Order, at("order")), ""), number(fig(asInteger, t.Seed, at("seed")), ""),
			number(fig(asCount, t.Sent, at("sent")), ""), number(fig(asCount, t.Lost, at("lost")), ""), number(fig(asCount, t.Redelivered, at("redelivered")), ""), nothing(),
			nothing(), nothing(), nothing(), nothing(), nothing(), nothing(), {Text: runState(t)},
		}
		if t.RatePerSecond > 0 {
			fields[6] = number(fig(asRate, t.RatePerSecond, at("ratePerSecond")), "")
		}
		if l := t.LatencyMicros; l != nil {
			fields[7] = words(quantile(percentiles(l.Publish)[2], at("latencyMicros.publish")))
			e2e := percentiles(l.EndToEnd)
			fields[8], fields[9] = words(quantile(e2e[0], at("latencyMicros.endToEnd"))), words(quantile(e2e[2], at("latencyMicros.endToEnd")))
			if l.FromSend != nil {
				fields[10] = words(quantile(percentiles(l.FromSend.EndToEnd)[2], at("latencyMicros.fromSend.endToEnd")))
			}
		}
		if t.RecoveryMillis != nil {
			fields[11] = number(fig(asMillis, *t.RecoveryMillis, at("recoveryMillis")), "")
		}
		if s := t.Sale; s != nil {
			fields[12] = field{Text: say("{0}/{1}", fig(asCount, s.Sold, at("sale.sold")), fig(asCount, s.Stock, at("sale.stock")))}
		}
		g.Lines = append(g.Lines, line{Fields: fields, ID: id})
	}
	g.Columns[10].Grey = true
	return g.trimmed()
}

func runState(t *trial.TrialRun) text {
	var all []text
	for _, s := range t.Invalid {
		all = append(all, harness(s))
	}
	switch {
	case len(all) > 0:
		return say("⊘ invalid: {0}", join(semicolon(), all...))
	case t.Saturated != "":
		return say("~ saturated: {0}", harness(t.Saturated))
	}
	return say("✓ valid")
}

// trimmed is the grid without the columns in which nothing stands.
func (g grid) trimmed() grid {
	out := g
	out.Columns = nil
	out.Lines = append([]line(nil), g.Lines...)
	for i := range out.Lines {
		out.Lines[i].Fields = nil
	}
	for k, c := range g.Columns {
		used := false
		for _, l := range g.Lines {
			used = used || !l.Fields[k].blank()
		}
		if !used {
			continue
		}
		out.Columns = append(out.Columns, c)
		for i, l := range g.Lines {
			out.Lines[i].Fields = append(out.Lines[i].Fields, l.Fields[k])
		}
	}
	return out
}
