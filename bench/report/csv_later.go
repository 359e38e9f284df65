package report

import (
	"strconv"

	"queuelab/bench/trial"
)

// laterColumns came with trials, spread and cost. Columns are only ever added,
// at the end, since people read them by their place.
func laterColumns() []csvColumn {
	text := func(name string, f func(*trial.Cell) string) csvColumn {
		return csvColumn{name, func(c *trial.Cell) string { return inert(f(c)) }}
	}
	columns := []csvColumn{text("profile", func(c *trial.Cell) string { return c.Profile }), text("noisy", func(c *trial.Cell) string { return c.Noisy })}
	for _, metric := range []string{"endToEnd.p50", "endToEnd.p99", "publish.p99", "ratePerSecond"} {
		columns = append(columns, spreadColumns(metric)...)
	}
	loss := func(c *trial.Cell) *trial.Loss { return c.Loss }
	columns = append(columns, when("lossTrials", loss, func(l *trial.Loss) int64 { return int64(l.Trials) }), when("lossLossy", loss, func(l *trial.Loss) int64 { return int64(l.Lossy) }),
		fraction("lossLow", loss, func(l *trial.Loss) float64 { return l.Low }), fraction("lossHigh", loss, func(l *trial.Loss) float64 { return l.High }))
	for _, stage := range []struct {
		name string
		of   func(*trial.Latency) *trial.Percentiles
	}{
		{"effect", func(l *trial.Latency) *trial.Percentiles { return l.Effect }},
		{"acked", func(l *trial.Latency) *trial.Percentiles { return l.Acked }},
		{"lateness", func(l *trial.Latency) *trial.Percentiles { return l.Lateness }},
		{"fromSendPublish", func(l *trial.Latency) *trial.Percentiles {
			if l.FromSend == nil {
				return nil
			}
			return &l.FromSend.Publish
		}},
		{"fromSendEndToEnd", func(l *trial.Latency) *trial.Percentiles {
			if l.FromSend == nil {
				return nil
			}
			return &l.FromSend.EndToEnd
		}},
	} {
		columns = append(columns, stageColumns(stage.name, func(c *trial.Cell) *trial.Percentiles {
			if c.LatencyMicros == nil {
				return nil
			}
			return stage.of(c.LatencyMicros)
		})...)
	}
	return append(append(columns, clickColumns()...), costColumns()...)
}

// fraction is a column of a number that is no whole one.
func fraction[T any](name string, part func(*trial.Cell) *T, f func(*T) float64) csvColumn {
	return csvColumn{name, func(c *trial.Cell) string {
		p := part(c)
		if p == nil {
			return ""
		}
		return strconv.FormatFloat(f(p), 'f', -1, 64)
	}}
}

func spreadColumns(metric string) []csvColumn {
	part := func(c *trial.Cell) *trial.Interval {
		i, ok := c.Spread[metric]
		if !ok {
			return nil
		}
		return &i
	}
	return []csvColumn{
		fraction(metric+".median", part, func(i *trial.Interval) float64 { return i.Median }), fraction(metric+".low", part, func(i *trial.Interval) float64 { return i.Low }),
		fraction(metric+".high", part, func(i *trial.Interval) float64 { return i.High }), when(metric+".trials", part, func(i *trial.Interval) int64 { return int64(i.N) }),
	}
}

func stageColumns(name string, part func(*trial.Cell) *trial.Percentiles) []csvColumn {
	return []csvColumn{
		when(name+"MicrosP50", part, func(p *trial.Percentiles) int64 { return p.P50 }), when(name+"MicrosP99", part, func(p *trial.Percentiles) int64 { return p.P99 }),
		when(name+"MicrosMax", part, func(p *trial.Percentiles) int64 { return p.Max }),
	}
}

func clickColumns() []csvColumn {
	sale := func(of func(*trial.Sale) *trial.Percentiles) func(*trial.Cell) *trial.Percentiles {
		return func(c *trial.Cell) *trial.Percentiles {
			if c.Sale == nil {
				return nil
			}
			return of(c.Sale)
		}
	}
	return append(stageColumns("answer", sale(func(s *trial.Sale) *trial.Percentiles { return s.AnswerMicros })),
		stageColumns("committed", sale(func(s *trial.Sale) *trial.Percentiles { return s.CommittedMicros }))...)
}

func costColumns() []csvColumn {
	cost := func(c *trial.Cell) *trial.Cost { return c.Cost }
	broker := func(c *trial.Cell) *trial.Cost {
		if c.Cost == nil || !c.Cost.BrokerKnown {
			return nil
		}
		return c.Cost
	}
	slo := func(c *trial.Cell) *trial.SLO { return c.SLO }
	return []csvColumn{
		fraction("clientCpuSecondsPerMillion", cost, func(k *trial.Cost) float64 { return k.ClientCPUSeconds }), fraction("brokerCpuSecondsPerMillion", broker, func(k *trial.Cost) float64 { return k.BrokerCPUSeconds }),
		when("clientMemoryBytes", cost, func(k *trial.Cost) int64 { return k.ClientMemoryBytes }), when("brokerMemoryBytes", broker, func(k *trial.Cost) int64 { return k.BrokerMemoryBytes }),
		when("brokerDiskBytesPerMillion", broker, func(k *trial.Cost) int64 { return k.BrokerDiskBytes }),
		{"promise", func(c *trial.Cell) string {
			if c.SLO == nil {
				return ""
			}
			return inert(c.SLO.Promise)
		}},
		fraction("highestRate", slo, func(s *trial.SLO) float64 { return s.HighestRate }),
	}
}
