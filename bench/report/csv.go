package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"queuelab/bench/trial"
)

// CSV writes one line for each cell, with a head. Numbers that a cell does not
// have are empty, never 0.
func CSV(w io.Writer, result trial.Result) error {
	columns := csvColumns()
	out := csv.NewWriter(w)
	head := make([]string, len(columns))
	for i, c := range columns {
		head[i] = c.name
	}
	if err := out.Write(head); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	for _, c := range newView(result).cells {
		record := make([]string, len(columns))
		for i, column := range columns {
			record[i] = column.value(c.Cell)
		}
		if err := out.Write(record); err != nil {
			return fmt.Errorf("write CSV: %w", err)
		}
	}
	out.Flush()
	return out.Error()
}

type csvColumn struct {
	name  string
	value func(*trial.Cell) string
}

func csvColumns() []csvColumn {
	text := func(name string, f func(*trial.Cell) string) csvColumn {
		return csvColumn{name, func(c *trial.Cell) string { return inert(f(c)) }}
	}
	num := func(name string, f func(*trial.Cell) int64) csvColumn {
		return csvColumn{name, func(c *trial.Cell) string { return strconv.FormatInt(f(c), 10) }}
	}
	columns := []csvColumn{
		text("backend", func(c *trial.Cell) string { return c.Backend }),
		text("setting", func(c *trial.Cell) string { return c.Setting }),
		text("broker", func(c *trial.Cell) string { return c.Broker.Name }),
		text("brokerVersion", func(c *trial.Cell) string { return c.Broker.Version }),
		{"emulated", func(c *trial.Cell) string { return strconv.FormatBool(c.Broker.Emulated) }},
		text("guarantee", func(c *trial.Cell) string { return c.Guarantee }),
		text("confirm", func(c *trial.Cell) string { return c.Confirm }),
		text("test", func(c *trial.Cell) string { return c.Test }),
		text("fault", func(c *trial.Cell) string { return c.Fault }),
		{"seed", func(c *trial.Cell) string { return strconv.FormatUint(c.Seed, 10) }},
		num("trials", func(c *trial.Cell) int64 { return int64(c.Trials) }),
		num("valid", func(c *trial.Cell) int64 { return int64(c.Valid) }),
		text("verdict", func(c *trial.Cell) string { return c.Verdict }),
		{"ratePerSecond", func(c *trial.Cell) string { return strconv.FormatFloat(c.RatePerSecond, 'f', -1, 64) }},
		text("loopModel", func(c *trial.Cell) string { return c.LoopModel }),
		num("sent", func(c *trial.Cell) int64 { return c.Sent }), num("accepted", func(c *trial.Cell) int64 { return c.Accepted }),
		num("rejected", func(c *trial.Cell) int64 { return c.Rejected }), num("unknown", func(c *trial.Cell) int64 { return c.Unknown }),
		num("unconfirmed", func(c *trial.Cell) int64 { return c.Unconfirmed }), num("lost", func(c *trial.Cell) int64 { return c.Lost }),
		num("recovered", func(c *trial.Cell) int64 { return c.Recovered }), num("phantom", func(c *trial.Cell) int64 { return c.Phantom }),
		num("rejectedDelivered", func(c *trial.Cell) int64 { return c.RejectedDelivered }), num("redelivered", func(c *trial.Cell) int64 { return c.Redelivered }),
		num("producerDuplicates", func(c *trial.Cell) int64 { return c.ProducerDuplicates }), num("effectDuplicates", func(c *trial.Cell) int64 { return c.EffectDuplicates }),
		num("reordered", func(c *trial.Cell) int64 { return c.Reordered }), num("stranded", func(c *trial.Cell) int64 { return c.Stranded }),
		num("deadLettered", func(c *trial.Cell) int64 { return c.DeadLettered }), num("policyDropped", func(c *trial.Cell) int64 { return c.PolicyDropped }),
		num("backlogAtFault", func(c *trial.Cell) int64 { return c.BacklogAtFault }), num("consumers", func(c *trial.Cell) int64 { return int64(c.Consumers) }),
		num("concurrency", func(c *trial.Cell) int64 { return int64(c.Concurrency) }), num("prefetch", func(c *trial.Cell) int64 { return int64(c.Prefetch) }),
		num("payloadBytes", func(c *trial.Cell) int64 { return int64(c.PayloadBytes) }), num("wallMillis", func(c *trial.Cell) int64 { return c.WallMillis }),
	}
	columns = append(columns, recoveryColumns()...)
	columns = append(columns, latencyColumns("publish", func(l *trial.Latency) trial.Percentiles { return l.Publish })...)
	columns = append(columns, latencyColumns("endToEnd", func(l *trial.Latency) trial.Percentiles { return l.EndToEnd })...)
	columns = append(columns, saleColumns()...)
	expected := func(name string, f func(*trial.Expected) string) csvColumn {
		return text(name, func(c *trial.Cell) string {
			if c.Expected == nil {
				return ""
			}
			return f(c.Expected)
		})
	}
	columns = append(columns,
		expected("expectedLost", func(e *trial.Expected) string { return e.Lost }),
		expected("expectedRedelivered", func(e *trial.Expected) string { return e.Redelivered }),
		expected("lostAtMost", func(e *trial.Expected) string {
			if e.LostAtMost == nil {
				return ""
			}
			return strconv.FormatInt(*e.LostAtMost, 10)
		}),
		expected("basis", func(e *trial.Expected) string { return e.Basis }),
		expected("why", func(e *trial.Expected) string { return e.Why }),
		text("invalidReasons", reasons),
		text("note", func(c *trial.Cell) string { return c.Note }),
		text("effectiveSettings", func(c *trial.Cell) string { return settingsText(c.EffectiveSettings) }),
	)
	return append(columns, laterColumns()...)
}

// when is a column of a part that a cell may lack: then it is empty.
func when[T any](name string, part func(*trial.Cell) *T, f func(*T) int64) csvColumn {
	return csvColumn{name, func(c *trial.Cell) string {
		p := part(c)
		if p == nil {
			return ""
		}
		return strconv.FormatInt(f(p), 10)
	}}
}

func recoveryColumns() []csvColumn {
	part := func(c *trial.Cell) *trial.Recovery { return c.RecoveryMillis }
	return []csvColumn{
		when("recoveryMillisP50", part, func(r *trial.Recovery) int64 { return r.P50 }),
		when("recoveryMillisMax", part, func(r *trial.Recovery) int64 { return r.Max }),
	}
}

func latencyColumns(name string, of func(*trial.Latency) trial.Percentiles) []csvColumn {
	part := func(c *trial.Cell) *trial.Latency { return c.LatencyMicros }
	put := func(suffix string, f func(trial.Percentiles) int64) csvColumn {
		return when(name+"Micros"+suffix, part, func(l *trial.Latency) int64 { return f(of(l)) })
	}
	return []csvColumn{
		put("P50", func(p trial.Percentiles) int64 { return p.P50 }), put("P90", func(p trial.Percentiles) int64 { return p.P90 }),
		put("P99", func(p trial.Percentiles) int64 { return p.P99 }), put("P999", func(p trial.Percentiles) int64 { return p.P999 }),
		put("Max", func(p trial.Percentiles) int64 { return p.Max }), put("N", func(p trial.Percentiles) int64 { return p.N }),
	}
}

func saleColumns() []csvColumn {
	part := func(c *trial.Cell) *trial.Sale { return c.Sale }
	put := func(name string, f func(*trial.Sale) int) csvColumn {
		return when(name, part, func(s *trial.Sale) int64 { return int64(f(s)) })
	}
	return []csvColumn{
		put("buyers", func(s *trial.Sale) int { return s.Buyers }), put("stock", func(s *trial.Sale) int { return s.Stock }),
		put("sold", func(s *trial.Sale) int { return s.Sold }), put("oversold", func(s *trial.Sale) int { return s.Oversold }),
		put("undersold", func(s *trial.Sale) int { return s.Undersold }), put("double", func(s *trial.Sale) int { return s.Double }),
		put("waiting", func(s *trial.Sale) int { return s.Waiting }), put("lostOrders", func(s *trial.Sale) int { return s.LostOrders }),
	}
}

func settingsText(settings map[string]string) string {
	var parts []string
	for _, k := range slices.SortedFunc(maps.Keys(settings), cmp.Compare) {
		parts = append(parts, k+"="+settings[k])
	}
	return strings.Join(parts, "; ")
}

// inert keeps a spreadsheet from taking a text for a formula.
func inert(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}
