package report

import "queuelab/bench/trial"

// rankingSections are one table for each profile: by latency, and beside it by
// throughput.
func (v *view) rankingSections() []section {
	var out []section
	for _, g := range v.groups() {
		if grid := g.rankingGrid(); len(grid.Lines) > 0 {
			out = append(out, section{Group: g, Grid: grid})
		}
	}
	return out
}

func (g group) rankingGrid() grid {
	table := grid{Name: "ranking-" + g.Slug(), Title: say("Ranking within {0}", g.Short()), Columns: []column{
		col("rank by p99", true), col("setting", false), col("end to end p99, median", true), col("end to end p50", true),
		col("rank by throughput", true), col("held, median", true), col("crashes with loss", true), col("not ranked because", false),
	}}
	rates := map[*row]standing{}
	for _, s := range g.standings(byThroughput()) {
		rates[s.Row] = s
	}
	for _, s := range g.standings(byLatency()) {
		t := rates[s.Row]
		if s.Cell == nil && t.Cell == nil && len(s.Row.of(trial.TestFault)) > 0 {
			continue // a campaign tests many settings that it does not time
		}
		var because text
		if s.Why.String() == t.Why.String() {
			because = s.Why
		} else {
			because = join(semicolon(), labelled(say("latency"), s.Why), labelled(say("throughput"), t.Why))
		}
		fields := []field{rankField(s), settingField(s.Row), standingField(s).over(rangeField(s)), middle(s), rankField(t), standingField(t).over(rangeField(t)), lossField(s.Row), {Text: or(because, raw(""))}}
		table.Lines = append(table.Lines, line{Row: s.Row, Cell: s.Cell, Fields: fields, Apart: !s.Ranked()})
	}
	table = table.unless("crashes with loss")
	if less := table.unless("held, median"); len(less.Columns) < len(table.Columns) {
		return less.without("rank by throughput")
	}
	return table
}

func labelled(name, t text) text {
	if t.Empty() {
		return t
	}
	return join(colon(), name, t)
}

func rankField(s standing) field {
	f := field{Text: s.Rank()}
	if s.Ranked() {
		f.Sort, f.HasNum = float64(s.First+s.Last)/2, true
	}
	return f
}

func standingField(s standing) field {
	if !s.Has {
		if s.Cell != nil {
			return absent(s.Cell).short()
		}
		return nothing()
	}
	f := number(s.Median, s.Cell.ID)
	if !s.Ranked() && !s.Row.Unranked() {
		m := markOf(s.Cell.Verdict)
		switch {
		case m.rank < 3:
			f.Text, f.Mark = say("{0} {1}", f.Text, raw(m.Symbol)), &m
		case s.Cell.Noisy != "":
			f.Text = say("{0} NOISY", f.Text)
		}
	}
	return f
}

// over puts an interval under its median.
func (f field) over(in field) field {
	if in.ID != "" {
		f.Sub = append([]text{in.Text}, in.Sub...)
	}
	return f
}

// short is a field without its second lines.
func (f field) short() field {
	f.Sub = nil
	return f
}

func rangeField(s standing) field {
	if s.Range.Empty() {
		return nothing()
	}
	f := field{Text: say("{0}, n={1}", s.Range, fig(asCount, s.N, s.Path+".n")), ID: s.Cell.ID}
	if s.N < fewestTrials {
		f.Sub = []text{say("only least and greatest")}
	}
	return f
}

func middle(s standing) field {
	if !s.Has || s.Cell.LatencyMicros == nil {
		return nothing()
	}
	return percentileField(percentiles(s.Cell.LatencyMicros.EndToEnd)[0], s.Cell, "latencyMicros.endToEnd")
}
