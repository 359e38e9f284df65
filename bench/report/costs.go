package report

import (
	"cmp"
	"strings"

	"queuelab/bench/trial"
)

// note is what must stand beside a row's numbers.
func note(r *row, cells ...*viewCell) string {
	var parts []string
	if r.Broker.Emulated {
		parts = append(parts, "emulated, not ranked")
	} else if r.Floor() {
		parts = append(parts, "harness floor, not ranked")
	}
	for _, c := range cells {
		if c == nil {
			continue
		}
		switch c.Verdict {
		case trial.VerdictSkipped, trial.VerdictInvalid, trial.VerdictSaturated, trial.VerdictContradiction:
			part := c.Verdict
			if why := cmp.Or(reasons(c.Cell), c.Note); why != "" {
				part += ": " + why
			}
			if len(parts) == 0 || parts[len(parts)-1] != part {
				parts = append(parts, part)
			}
		}
	}
	return strings.Join(parts, "; ")
}

func (v *view) latencyGrid() grid {
	g := grid{Name: "latency", Title: "Latency at the offered rate, open loop, from the due time", Columns: []column{
		{"setting", false}, {"guarantee", false}, {"confirmed by", false}, {"offered", true}, {"publish p50", true}, {"publish p99", true},
		{"end to end p50", true}, {"p90", true}, {"p99", true}, {"p99.9", true}, {"max", true}, {"n", true}, {"verdict", false},
	}}
	for _, r := range v.rows {
		for _, c := range r.of(trial.TestLatency) {
			fields := []field{settingField(r), words(r.Guarantee), words(confirmText(r.Confirm)), number(rate(c.RatePerSecond), c.RatePerSecond)}
			if c.LatencyMicros == nil || !measured(c.Cell) {
				for range 8 {
					fields = append(fields, words(""))
				}
			} else {
				publish, e2e := percentiles(c.LatencyMicros.Publish), percentiles(c.LatencyMicros.EndToEnd)
				fields = append(fields, percentileField(publish[0], c), percentileField(publish[2], c))
				for _, p := range e2e {
					fields = append(fields, percentileField(p, c))
				}
				n := c.LatencyMicros.EndToEnd.N
				fields = append(fields, number(count(n), float64(n)))
			}
			fields = append(fields, verdictField(c).because(c))
			g.Lines = append(g.Lines, line{r, c, fields})
		}
	}
	return g
}

func (v *view) throughputGrid() grid {
	g := grid{Name: "throughput", Title: "Throughput held, closed loop", Columns: []column{
		{"setting", false}, {"guarantee", false}, {"confirmed by", false}, {"held", true}, {"runs", true}, {"sent", true}, {"lost", true}, {"payload", true}, {"verdict", false},
	}}
	for _, r := range v.rows {
		for _, c := range r.of(trial.TestThroughput) {
			fields := []field{settingField(r), words(r.Guarantee), words(confirmText(r.Confirm))}
			if !measured(c.Cell) {
				fields = append(fields, words(""), words(""), words(""), words(""), words(""))
			} else {
				fields = append(fields, number(rate(c.RatePerSecond), c.RatePerSecond), number(trialsText(c.Cell), float64(c.Valid)),
					number(count(c.Sent), float64(c.Sent)), number(count(c.Lost), float64(c.Lost)), number(count(int64(c.PayloadBytes))+" B", float64(c.PayloadBytes)))
			}
			fields = append(fields, verdictField(c).because(c))
			g.Lines = append(g.Lines, line{r, c, fields})
		}
	}
	return g
}

// costsGrid joins latency and throughput for the narrow tables.
func (v *view) costsGrid() grid {
	g := grid{Name: "costs", Title: "Latency at the offered rate (open loop, from due) and throughput (closed loop)", Columns: []column{
		{"setting", false}, {"guarantee", false}, {"confirmed by", false}, {"offered", true}, {"publish p99", true}, {"end to end p50", true}, {"p99", true}, {"max", true}, {"held", true}, {"note", false},
	}}
	for _, r := range v.rows {
		latency, throughput := r.of(trial.TestLatency), r.of(trial.TestThroughput)
		for i := range max(len(latency), 1) {
			fields := []field{settingField(r), words(r.Guarantee), words(confirmText(r.Confirm)), words(""), words(""), words(""), words(""), words("")}
			var c *viewCell
			if i < len(latency) {
				c = latency[i]
				if c.LatencyMicros != nil && measured(c.Cell) {
					e2e := percentiles(c.LatencyMicros.EndToEnd)
					fields[3] = words(rate(c.RatePerSecond))
					fields[4] = percentileField(percentiles(c.LatencyMicros.Publish)[2], c)
					fields[5], fields[6], fields[7] = percentileField(e2e[0], c), doubtMark(percentileField(e2e[2], c), c), percentileField(e2e[4], c)
				} else {
					fields[5] = absent(c)
				}
			}
			var t *viewCell
			if i < len(throughput) {
				t = throughput[i]
			}
			g.Lines = append(g.Lines, line{r, c, append(fields, heldBrief(r), field{Text: note(r, c, t)})})
		}
	}
	return g
}

// latencyBrief is p50 and p99 end to end of the first cell that can be read.
func latencyBrief(r *row) []field {
	cells := r.of(trial.TestLatency)
	for _, c := range cells {
		if c.LatencyMicros == nil || !measured(c.Cell) {
			continue
		}
		e2e := percentiles(c.LatencyMicros.EndToEnd)
		return []field{percentileField(e2e[0], c), doubtMark(percentileField(e2e[2], c), c)}
	}
	if len(cells) > 0 {
		f := absent(cells[0])
		return []field{f, words("")}
	}
	return []field{words(""), words("")}
}

// doubtMark marks a number that must not be read without its verdict.
func doubtMark(f field, c *viewCell) field {
	switch c.Verdict {
	case trial.VerdictSaturated, trial.VerdictContradiction, trial.VerdictOracleUpdate:
		m := markOf(c.Verdict)
		f.Text, f.Mark = f.Text+" "+m.Symbol, &m
	}
	return f
}

func heldBrief(r *row) field {
	cells := r.of(trial.TestThroughput)
	for _, c := range cells {
		if measured(c.Cell) {
			return doubtMark(field{Text: rate(c.RatePerSecond), Sort: c.RatePerSecond, HasNum: true, ID: c.ID}, c)
		}
	}
	if len(cells) > 0 {
		return absent(cells[0])
	}
	return words("")
}
