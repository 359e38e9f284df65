package report

import (
	"math"
	"time"

	"queuelab/bench/ledger"
	"queuelab/bench/trial"
)

// sampleFull is the handmade result with all that a result can hold: trials,
// spread, curves, the promise, scaling, cost, the floor, and the noise. Its
// numbers are what such machines give; their spread is made up but fixed.
func sampleFull() trial.Result {
	r := sample()
	r.Run.Suite, r.Run.Args = "full", []string{"run", "--suite", "full", "--slo", "p99<20ms,lost=0", "--out", "results/full"}
	r.Run.FinishedAt = r.Run.StartedAt.Add(3*time.Hour + 17*time.Minute)
	r.Run.Floor = &trial.Floor{RatePerSecond: 1000, EndToEnd: trial.Percentiles{P50: 4, P90: 7, P99: 21, P999: 160, Max: 940, N: 30_000}, RecordNanos: 412.6}
	r.Run.Host.ClockSource = "tsc"
	r.Run.Host.CPUPressure = &trial.Pressure{Before: 0.4, During: 6.8}
	r.Run.Host.NoiseMicros = &trial.Noise{P50: 62, P99: 240, Max: 3100}
	r.Run.Host.ClockJumpMillis = 12
	profiles := map[string]string{}
	for _, s := range trial.CoreSettings() {
		profiles[s.String()] = s.Profile
	}
	order := 0
	for i := range r.Cells {
		c := &r.Cells[i]
		c.Profile = profiles[c.Backend+"/"+c.Setting]
		if c.Verdict == trial.VerdictSkipped || c.Verdict == trial.VerdictNotApplicable {
			continue
		}
		switch c.Test {
		case trial.TestLatency:
			fullLatency(c, &order)
		case trial.TestThroughput:
			fullThroughput(c, &order)
		case trial.TestCrash:
			fullCrash(c, &order)
		case trial.TestSale:
			fullSale(c)
		}
	}
	for _, s := range trial.CoreSettings() {
		if s.Backend != "memory" && s.String() != "kafka/acks-all" {
			r.Cells = append(r.Cells, fullSLO(r, s), fullScaling(r, s, trial.TestScalingConsumers, []int{1, 2, 4, 8, 16}), fullScaling(r, s, trial.TestScalingConnections, []int{1, 2, 4, 8}),
				fullScaling(r, s, trial.TestScalingPayload, []int{100, 1000, 10_000, 100_000}), fullScaling(r, s, trial.TestScalingBatch, []int{1, 10, 100}))
		}
	}
	return r
}

// wobble is a factor near 1 that differs from trial to trial.
func wobble(i int, by float64) float64 {
	return 1 + by*[]float64{0, -0.7, 0.9, 0.3, -0.4, 0.6, -0.9, 0.1, 0.5, -0.2, 0.8, -0.6}[i%12]
}

func scaled(p trial.Percentiles, f float64) trial.Percentiles {
	s := func(v int64) int64 { return int64(float64(v) * f) }
	return trial.Percentiles{P50: s(p.P50), P90: s(p.P90), P99: s(p.P99), P999: s(p.P999), Max: s(p.Max), N: p.N}
}

func run(c *trial.Cell, n int, order *int) trial.TrialRun {
	*order++
	return trial.TrialRun{N: n, Order: *order*7%1000 + 1, Seed: c.Seed*1_000_003 + uint64(n), StartedAt: time.Date(2026, 11, 30, 1, 20+n, 0, 0, time.UTC), RatePerSecond: c.RatePerSecond}
}

const stalls = "rabbitmq/classic" // whose sender stood still for most of a second

func fullLatency(c *trial.Cell, order *int) {
	c.Trials, c.Valid = 8, 8
	c.Load = &trial.Load{Shape: "constant", Content: "random", Keys: "uniform over 1000", Producers: 1, Batch: 1}
	l := c.LatencyMicros
	half, most := scaled(l.EndToEnd, 1.15), scaled(l.EndToEnd, 1.3)
	l.Effect, l.Acked, l.Lateness = &half, &most, &trial.Percentiles{P50: 9, P90: 31, P99: 120, P999: 480, Max: 2900, N: l.EndToEnd.N}
	from := trial.FromSend{Publish: scaled(l.Publish, 0.97), EndToEnd: scaled(l.EndToEnd, 0.97)}
	if c.Backend+"/"+c.Setting == stalls {
		from.EndToEnd.P99, from.EndToEnd.P999 = int64(float64(l.EndToEnd.P99)*0.5), int64(float64(l.EndToEnd.P999)*0.22)
	}
	l.FromSend = &from
	noise := 0.04
	switch c.Backend + "/" + c.Setting {
	case "redis-streams/no-persistence":
		noise, c.Noisy = 0.45, "the middle half of 8 trials spans 61 % of their median"
	case "redis-pubsub/default":
		noise = 0.3
	}
	for n := 1; n <= 8; n++ {
		t := run(c, n, order)
		f := wobble(n, noise)
		t.Counts = ledger.Counts{Sent: c.Sent / 8, Accepted: c.Accepted / 8}
		t.LatencyMicros = &trial.Latency{Publish: scaled(l.Publish, f), EndToEnd: scaled(l.EndToEnd, f), FromSend: &trial.FromSend{Publish: from.Publish, EndToEnd: from.EndToEnd}}
		if c.Verdict == trial.VerdictSaturated {
			t.Saturated = "offered 1000/s, sent 712/s"
		}
		c.Runs = append(c.Runs, t)
	}
	around := func(v int64) trial.Interval {
		return trial.Interval{Median: float64(v) + 0.5, Low: math.Round(float64(v) * (1 - noise)), High: math.Round(float64(v) * (1 + noise)), N: 8}
	}
	c.Spread = map[string]trial.Interval{"endToEnd.p50": around(l.EndToEnd.P50), "endToEnd.p99": around(l.EndToEnd.P99), "publish.p50": around(l.Publish.P50), "publish.p99": around(l.Publish.P99)}
	for _, q := range []float64{0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999} {
		at := func(p trial.Percentiles) int64 { return between3(p, q) }
		c.Curve = append(c.Curve, trial.CurvePoint{Q: q, Publish: at(l.Publish), EndToEnd: at(l.EndToEnd), EndToEndFromSend: at(from.EndToEnd)})
	}
	c.Cost = fullCost(c)
}

// between3 reads a distribution between its percentiles.
func between3(p trial.Percentiles, q float64) int64 {
	xs := []float64{0, nines(0.5), 1, 2, 3}
	ys := []float64{float64(p.P50) * 0.6, float64(p.P50), float64(p.P90), float64(p.P99), float64(p.P999)}
	x := nines(q)
	for i := 1; i < len(xs); i++ {
		if x <= xs[i]+1e-9 {
			f := (x - xs[i-1]) / (xs[i] - xs[i-1])
			return int64(math.Round(ys[i-1] * math.Pow(ys[i]/ys[i-1], f)))
		}
	}
	return p.P999
}

func fullCost(c *trial.Cell) *trial.Cost {
	k := &trial.Cost{ClientCPUSeconds: 8.214, BrokerCPUSeconds: 5.6, ClientMemoryBytes: 61 << 20, BrokerMemoryBytes: 18 << 20, BrokerDiskBytes: 0, BrokerKnown: true}
	switch c.Backend {
	case "memory":
		return &trial.Cost{ClientCPUSeconds: 1.9, ClientMemoryBytes: 44 << 20}
	case "rabbitmq":
		k.BrokerCPUSeconds, k.BrokerMemoryBytes, k.BrokerDiskBytes = 41.7, 148<<20, 391<<20
	case "kafka":
		k.BrokerCPUSeconds, k.BrokerMemoryBytes, k.BrokerDiskBytes = 22.05, 512<<20, 338<<20
	}
	return k
}

func fullThroughput(c *trial.Cell, order *int) {
	c.Trials, c.Valid = 8, 7
	c.Load = &trial.Load{Shape: "closed", Content: "random", Keys: "uniform over 1000", Producers: 4, Batch: 1}
	noise := 0.03
	if c.Backend+"/"+c.Setting == "rabbitmq/quorum" {
		noise = 0.34
	}
	if c.Backend+"/"+c.Setting == "kafka/acks-1" {
		noise, c.Noisy = 0.5, "the middle half of 7 trials spans 73 % of their median"
	}
	for n := 1; n <= 8; n++ {
		t := run(c, n, order)
		t.RatePerSecond = math.Round(c.RatePerSecond * wobble(n, noise))
		t.Counts = ledger.Counts{Sent: int64(t.RatePerSecond) * 4, Accepted: int64(t.RatePerSecond) * 4}
		if n == 3 {
			t.Invalid = []string{"the host was suspended for 2.1s"}
		}
		c.Runs = append(c.Runs, t)
	}
	c.Spread = map[string]trial.Interval{
		"ratePerSecond":         {Median: c.RatePerSecond, Low: math.Round(c.RatePerSecond * (1 - noise)), High: math.Round(c.RatePerSecond * (1 + noise)), N: 7},
		"cost.clientCpuSeconds": {Median: 8.2, Low: 7.9, High: 8.8, N: 7}, "cost.brokerCpuSeconds": {Median: 5.6, Low: 5.1, High: 6.3, N: 7}}
	c.Cost = fullCost(c)
	if c.Cost.BrokerKnown = c.Backend != "memory"; !c.Cost.BrokerKnown {
		delete(c.Spread, "cost.brokerCpuSeconds")
	}
}

func fullCrash(c *trial.Cell, order *int) {
	if c.Valid == 0 {
		return
	}
	c.Trials, c.Valid = 12, 12
	if c.Backend == "kafka" {
		c.Trials, c.Valid = 4, 4
	}
	lossy := 0
	switch {
	case c.Verdict == trial.VerdictContradiction:
		lossy = 1
		c.Note = "lost in 1 of 12 crashes"
		c.LossWindowMillis = &trial.LossWindow{P50: 940, Max: 940}
	case c.Lost > 0:
		lossy = c.Valid
	}
	n := float64(c.Valid)
	c.Loss = &trial.Loss{Trials: c.Valid, Lossy: lossy}
	switch lossy { // exact, two-sided
	case 0:
		c.Loss.High = 1 - math.Pow(0.025, 1/n)
	case 1:
		c.Loss.Low, c.Loss.High = 0.0021, 0.3848
	default:
		c.Loss.Low, c.Loss.High = math.Pow(0.025, 1/n), 1
	}
	for k := 1; k <= c.Valid; k++ {
		t := run(c, k, order)
		t.RatePerSecond = 0
		t.Counts = ledger.Counts{Sent: 500, Accepted: 500, Redelivered: 1}
		if lossy == c.Valid || lossy == 1 && k == 5 {
			t.Lost = c.Lost / int64(lossy)
		}
		t.RecoveryMillis = ptr(int64(310 * wobble(k, 0.5)))
		c.Runs = append(c.Runs, t)
	}
}

func fullSale(c *trial.Cell) {
	s := *c.Sale
	s.AnswerMicros = &trial.Percentiles{P50: 1800, P90: 5200, P99: 21_000, P999: 64_000, Max: 88_000, N: 5000}
	s.CommittedMicros = &trial.Percentiles{P50: 9400, P90: 31_000, P99: 88_000, P999: 140_000, Max: 191_000, N: 500}
	c.Sale = &s
	c.Load = &trial.Load{Shape: "spike", Content: "json", Keys: "one", Producers: 64, Batch: 1}
	c.Spread = map[string]trial.Interval{"sale.answer.p99": {Median: 21_000, Low: 19_400, High: 24_800, N: 6}}
	c.Cost = fullCost(c)
}

func fullBase(r trial.Result, s trial.Setting, test string) trial.Cell {
	for _, c := range r.Cells {
		if c.Backend == s.Backend && c.Setting == s.Name && c.Test == trial.TestThroughput {
			return trial.Cell{Backend: c.Backend, Setting: c.Setting, Broker: c.Broker, Guarantee: c.Guarantee, Confirm: c.Confirm, Profile: c.Profile, Test: test, Fault: trial.FaultNone, Seed: c.Seed + 100,
				Trials: 3, Valid: 3, Consumers: 1, Concurrency: 1, Prefetch: 16, PayloadBytes: 256, EffectiveSettings: c.EffectiveSettings, RatePerSecond: c.RatePerSecond, Verdict: trial.VerdictAsExpected, WallMillis: 61_000}
		}
	}
	return trial.Cell{}
}

func fullSLO(r trial.Result, s trial.Setting) trial.Cell {
	c := fullBase(r, s, trial.TestSLO)
	held := c.RatePerSecond
	c.RatePerSecond, c.LoopModel = 0, "open"
	c.SLO = &trial.SLO{Promise: "p99<20ms,lost=0", Limit: "the next step is smaller than 2 %"}
	base := 300_000_000 / held
	for _, part := range []float64{0.1, 0.25, 0.5, 0.7, 0.8, 0.9} {
		offered := math.Round(held * part)
		p99 := int64(base * 0.2 / (1 - part) / 10)
		if part > 0.8 {
			p99 *= 14
		}
		l := trial.Percentiles{P50: p99 / 5, P90: p99 / 2, P99: p99, P999: p99 * 3, Max: p99 * 6, N: int64(offered) * 10}
		point := trial.RatePoint{Offered: offered, Achieved: offered, Kept: p99 < 20_000, LatencyMicros: &trial.Latency{Publish: scaled(l, 0.6), EndToEnd: l, FromSend: &trial.FromSend{Publish: scaled(l, 0.5), EndToEnd: scaled(l, 0.8)}}}
		if point.Kept {
			c.SLO.HighestRate = offered
		} else {
			point.Achieved, point.Why = math.Round(offered*0.97), "p99 was above 20ms, and the backlog grew"
		}
		c.SLO.Curve = append(c.SLO.Curve, point)
	}
	return c
}

func fullScaling(r trial.Result, s trial.Setting, test string, values []int) trial.Cell {
	c := fullBase(r, s, test)
	held := c.RatePerSecond
	c.LoopModel = "closed"
	for i, v := range values {
		f := 0.45 + 0.55*float64(i+1)/float64(len(values))
		if test == trial.TestScalingPayload {
			f = 1 / (1 + float64(v)/9000)
		}
		m := math.Round(held * f)
		p := trial.ScalePoint{Value: v, Rate: trial.Interval{Median: m, Low: math.Round(m * 0.93), High: math.Round(m * 1.06), N: 3}, Rates: []float64{math.Round(m * 0.93), m, math.Round(m * 1.06)}}
		if s.Backend == "redis-pubsub" && v == 16 {
			p = trial.ScalePoint{Value: v, Reason: "every consumer hears everything: they do not share the work"}
		}
		c.Scaling = append(c.Scaling, p)
	}
	return c
}
