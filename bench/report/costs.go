package report

import (
	"queuelab/bench/trial"
)

// remark is what must stand beside a row's numbers.
func remark(r *row, cells ...*viewCell) text {
	var all []text
	if r.Broker.Emulated {
		all = append(all, say("emulated, not ranked"))
	} else if r.Floor() {
		all = append(all, say("harness floor, not ranked"))
	}
	for _, c := range cells {
		if c == nil {
			continue
		}
		var t text
		switch c.Verdict {
		case trial.VerdictSkipped, trial.VerdictInvalid, trial.VerdictSaturated, trial.VerdictContradiction:
			t = join(colon(), term(c.Verdict), why(c))
		default:
			if c.Noisy == "" {
				continue
			}
			t = say("NOISY: {0}", harness(c.Noisy))
		}
		if len(all) == 0 || all[len(all)-1].String() != t.String() {
			all = append(all, t)
		}
	}
	return join(semicolon(), all...)
}

// percentile columns of the latency table: of the response, and end to end.
func (v *view) latencyGrid() grid {
	g := grid{Name: "latency", Title: say("Latency at the offered rate, open loop, from the due time"), Columns: []column{
		col("setting", false), col("guarantee", false), col("confirmed by", false), col("offered", true), col("response p50", true), col("response p99", true),
		col("end to end p50", true), col("p90", true), col("p99", true), col("p99.9", true), col("max", true), col("n", true), col("verdict", false),
	}}
	for _, r := range v.rows {
		for _, c := range r.of(trial.TestLatency) {
			fields := []field{settingField(r), words(term(orDash(r.Guarantee))), words(confirmText(r.Confirm)), rateField(c)}
			if c.LatencyMicros == nil || !measured(c.Cell) {
				for range 8 {
					fields = append(fields, nothing())
				}
			} else {
				response := latencyFields(c, "publish", c.LatencyMicros.Publish, func(f *trial.FromSend) trial.Percentiles { return f.Publish })
				fields = append(fields, response[0], response[2])
				fields = append(fields, endToEndFields(c)...)
				fields = append(fields, number(c.count("latencyMicros.endToEnd.n", c.LatencyMicros.EndToEnd.N), c.ID))
			}
			fields = append(fields, verdictField(c).noisy(c).because(c))
			g.Lines = append(g.Lines, line{Row: r, Cell: c, Fields: fields, Apart: r.Unranked()})
		}
	}
	return g
}

func rateField(c *viewCell) field {
	if c.RatePerSecond <= 0 {
		return nothing()
	}
	return number(fig(asRate, c.RatePerSecond, c.path("ratePerSecond")), c.ID)
}

// latencyFields are the percentiles of one stage, each with the uncorrected one
// beside it where the result has it.
func latencyFields(c *viewCell, stage string, p trial.Percentiles, uncorrected func(*trial.FromSend) trial.Percentiles) []field {
	var fields []field
	for i, q := range percentiles(p) {
		f := percentileField(q, c, "latencyMicros."+stage)
		if from := c.LatencyMicros.FromSend; from != nil {
			if g := percentiles(uncorrected(from))[i]; g.N > 0 && g.supported() {
				f.Grey = quantile(g, c.path("latencyMicros.fromSend."+stage))
			}
		}
		fields = append(fields, f)
	}
	return fields
}

func endToEndFields(c *viewCell) []field {
	return latencyFields(c, "endToEnd", c.LatencyMicros.EndToEnd, func(f *trial.FromSend) trial.Percentiles { return f.EndToEnd })
}

// noisy marks what must not be ranked.
func (f field) noisy(c *viewCell) field {
	if c.Noisy != "" {
		f.Text = say("{0}, NOISY", f.Text)
		f.Sub = append(f.Sub, harness(c.Noisy))
	}
	return f
}

func (v *view) throughputGrid() grid {
	g := grid{Name: "throughput", Title: say("Throughput held, closed loop"), Columns: []column{
		col("setting", false), col("guarantee", false), col("confirmed by", false), col("held", true), col("95 % interval", true), col("runs", true), col("sent", true),
		col("lost", true), col("payload", true), col("verdict", false),
	}}
	for _, r := range v.rows {
		for _, c := range r.of(trial.TestThroughput) {
			fields := []field{settingField(r), words(term(orDash(r.Guarantee))), words(confirmText(r.Confirm))}
			if !measured(c.Cell) {
				fields = append(fields, nothing(), nothing(), nothing(), nothing(), nothing(), nothing())
			} else {
				fields = append(fields, rateField(c), rangeField(byThroughput().standing(r)), field{Text: trialsText(c), Sort: float64(c.Valid), HasNum: true},
					number(c.count("sent", c.Sent), c.ID), number(c.count("lost", c.Lost), c.ID),
					field{Text: say("{0} B", c.count("payloadBytes", int64(c.PayloadBytes))), Sort: float64(c.PayloadBytes), HasNum: true})
			}
			fields = append(fields, verdictField(c).noisy(c).because(c))
			g.Lines = append(g.Lines, line{Row: r, Cell: c, Fields: fields, Apart: r.Unranked()})
		}
	}
	return g
}

// costsGrid joins latency and throughput for the narrow tables.
func (v *view) costsGrid() grid {
	g := grid{Name: "costs", Title: say("Latency at the offered rate (open loop, from due) and throughput (closed loop)"), Columns: []column{
		col("setting", false), col("guarantee", false), col("confirmed by", false), col("offered", true), col("response p99", true), col("end to end p50", true), col("p99", true),
		col("95 % interval", true), {Key: "from send", Title: say("from send"), Num: true, Grey: true}, col("max", true), col("held", true), col(note, false),
	}}
	for _, r := range v.rows {
		latency, throughput := r.of(trial.TestLatency), r.of(trial.TestThroughput)
		for i := range max(len(latency), 1) {
			fields := []field{settingField(r), words(term(orDash(r.Guarantee))), words(confirmText(r.Confirm))}
			for range 7 {
				fields = append(fields, nothing())
			}
			var c *viewCell
			if i < len(latency) {
				c = latency[i]
				if c.LatencyMicros != nil && measured(c.Cell) {
					e2e := endToEndFields(c)
					fields[3], fields[4] = rateField(c), percentileField(percentiles(c.LatencyMicros.Publish)[2], c, "latencyMicros.publish")
					fields[5], fields[6], fields[9] = e2e[0], doubtMark(e2e[2], c), e2e[4]
					if i == 0 {
						copy(fields[7:9], p99Beside(r))
					}
				} else {
					fields[5] = absent(c)
				}
			}
			var t *viewCell
			if i < len(throughput) {
				t = throughput[i]
			}
			g.Lines = append(g.Lines, line{Row: r, Cell: c, Fields: append(fields, heldBrief(r), field{Text: remark(r, c, t)}), Apart: r.Unranked()})
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
		return []field{percentileField(e2e[0], c, "latencyMicros.endToEnd"), doubtMark(percentileField(e2e[2], c, "latencyMicros.endToEnd"), c)}
	}
	if len(cells) > 0 {
		return []field{absent(cells[0]), nothing()}
	}
	return []field{nothing(), nothing()}
}

// doubtMark marks a number that must not be read without its verdict.
func doubtMark(f field, c *viewCell) field {
	switch c.Verdict {
	case trial.VerdictSaturated, trial.VerdictContradiction, trial.VerdictOracleUpdate:
		m := markOf(c.Verdict)
		f.Text, f.Mark = say("{0} {1}", f.Text, raw(m.Symbol)), &m
	}
	if c.Noisy != "" {
		f.Text = say("{0} NOISY", f.Text)
	}
	return f
}

func heldBrief(r *row) field {
	cells := r.of(trial.TestThroughput)
	for _, c := range cells {
		if measured(c.Cell) {
			return doubtMark(rateField(c), c)
		}
	}
	if len(cells) > 0 {
		return absent(cells[0])
	}
	return nothing()
}
