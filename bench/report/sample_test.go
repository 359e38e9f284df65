package report

import (
	"time"

	"queuelab/bench/ledger"
	"queuelab/bench/trial"
)

func ptr(n int64) *int64 { return &n }

// sample is a handmade result with every test, fault and verdict.
func sample() trial.Result {
	started := time.Date(2026, 11, 30, 1, 20, 0, 0, time.UTC)
	r := trial.Result{Schema: trial.Schema, Run: trial.Run{
		ID: "20261130-012000-7", StartedAt: started, FinishedAt: started.Add(9*time.Minute + 12*time.Second), Complete: true,
		Commit: "8665961", GoVersion: "go1.26.8", Suite: "quick", Args: []string{"run", "--suite", "quick", "--out", "results/today"},
		Host: trial.Host{CPU: "Example CPU 2.6 GHz", Cores: 2, Kernel: "Linux 6.18.44", MemoryBytes: 24 << 30, FsyncMicros: trial.Fsync{P50: 410, P99: 2150}, Load1: 0.31},
	}}
	type shape struct {
		guarantee, confirm string
		p50, held          float64
	}
	shapes := map[string]shape{
		"memory/bounded":               {"at least once", "memory", 3, 1_450_000},
		"redis-list/no-persistence":    {"at most once", "memory", 180, 61_200},
		"redis-list/aof-everysec":      {"at most once", "operating system", 195, 58_100},
		"redis-list/aof-always":        {"at most once", "disk", 910, 21_400},
		"redis-pubsub/default":         {"at most once", "nobody", 150, 70_900},
		"redis-streams/no-persistence": {"at least once", "memory", 240, 52_300},
		"redis-streams/aof-everysec":   {"at least once", "operating system", 260, 49_800},
		"redis-streams/aof-always":     {"at least once", "disk", 1_050, 18_700},
		"rabbitmq/transient":           {"at most once", "nobody", 420, 33_000},
		"rabbitmq/classic":             {"at least once", "disk", 1_900, 17_600},
		"rabbitmq/quorum":              {"at least once", "disk", 2_600, 12_900},
		"kafka/acks-0":                 {"at least once", "nobody", 2_100, 95_000},
		"kafka/acks-1":                 {"at least once", "operating system", 3_300, 42_000},
		"kafka/acks-all":               {"at least once", "operating system", 3_400, 41_000},
	}
	for i, s := range trial.CoreSettings() {
		sh := shapes[s.String()]
		broker := trial.Broker{Name: s.Broker, Version: map[string]string{"redis": "7.0.15", "rabbitmq": "3.10.8", "kafka": "4.3.1"}[s.Broker]}
		if s.Broker == "" {
			broker = trial.Broker{Name: "none"}
		}
		base := trial.Cell{
			Backend: s.Backend, Setting: s.Name, Broker: broker, Guarantee: sh.guarantee, Confirm: sh.confirm, Fault: trial.FaultNone, Seed: uint64(40 + i),
			Trials: 1, Valid: 1, Consumers: 1, Concurrency: 1, Prefetch: 16, PayloadBytes: 256, Verdict: trial.VerdictAsExpected, WallMillis: 6_400,
			EffectiveSettings: map[string]string{"url": s.Backend + "://127.0.0.1:6379/0?queue=orders", "appendonly": "yes"},
		}
		spread := func(p50 float64, n int64) trial.Percentiles {
			return trial.Percentiles{P50: int64(p50), P90: int64(p50 * 1.8), P99: int64(p50 * 5), P999: int64(p50 * 14), Max: int64(p50 * 31), N: n}
		}
		latency := base
		latency.Test, latency.RatePerSecond, latency.LoopModel = trial.TestLatency, 1000, "open"
		latency.Counts = ledger.Counts{Sent: 12_000, Accepted: 12_000}
		latency.LatencyMicros = &trial.Latency{Publish: spread(sh.p50*0.6, 12_000), EndToEnd: spread(sh.p50, 12_000)}
		throughput := base
		throughput.Test, throughput.RatePerSecond, throughput.LoopModel = trial.TestThroughput, sh.held, "closed"
		throughput.Counts = ledger.Counts{Sent: int64(sh.held) * 4, Accepted: int64(sh.held) * 4}
		r.Cells = append(r.Cells, latency, throughput)
		for _, fault := range []string{trial.FaultConsumerKillMidHandle, trial.FaultConsumerKillBeforeAck, trial.FaultBrokerKill} {
			r.Cells = append(r.Cells, sampleCrash(base, fault))
		}
		for _, fault := range []string{trial.FaultNone, trial.FaultServiceKill} {
			sale := base
			sale.Test, sale.Fault = trial.TestSale, fault
			sale.Sale = &trial.Sale{Buyers: 5000, Stock: 500, Sold: 500}
			if fault == trial.FaultServiceKill && sh.guarantee == "at most once" || s.Backend == "memory" && fault == trial.FaultServiceKill {
				sale.Sale = &trial.Sale{Buyers: 5000, Stock: 500, Sold: 461, Undersold: 39, Waiting: 39, LostOrders: 39}
			}
			r.Cells = append(r.Cells, sale)
		}
	}
	return withEveryVerdict(r)
}

func sampleCrash(base trial.Cell, fault string) trial.Cell {
	c := base
	c.Test, c.Fault, c.Trials, c.Valid = trial.TestCrash, fault, 3, 3
	c.Counts = ledger.Counts{Sent: 6000, Accepted: 6000}
	c.Expected = &trial.Expected{Lost: "0", Redelivered: "in-hand", LostAtMost: ptr(0), Basis: "V", Why: "stays pending until acked"}
	c.RecoveryMillis = &trial.Recovery{P50: 310, Max: 642}
	switch {
	case c.Backend == "memory" && fault == trial.FaultBrokerKill:
		c.Verdict, c.Expected, c.Valid, c.Trials, c.RecoveryMillis = trial.VerdictNotApplicable, nil, 0, 0, nil
		c.Note = "there is no broker"
	case fault == trial.FaultBrokerKill && (c.Setting == "no-persistence" || c.Setting == "transient"):
		c.BacklogAtFault = 3000
		c.Lost = 3000
		c.Expected = &trial.Expected{Lost: "backlog", Redelivered: "0", LostAtMost: ptr(3000), Basis: "V", Why: "nothing on disk"}
	case c.Guarantee == "at most once" && fault == trial.FaultConsumerKillMidHandle:
		c.Lost = 3
		c.Expected = &trial.Expected{Lost: "in-hand", Redelivered: "0", LostAtMost: ptr(3), Basis: "V", Why: "delivering removes; one per consumer"}
	case c.Guarantee == "at most once":
		c.Expected = &trial.Expected{Lost: "0", Redelivered: "0", LostAtMost: ptr(0), Basis: "D", Why: "already removed"}
	default:
		c.Redelivered = 3
	}
	return c
}

// withEveryVerdict changes single cells, so that each verdict is there.
func withEveryVerdict(r trial.Result) trial.Result {
	change := func(setting, test, fault string, f func(*trial.Cell)) {
		for i := range r.Cells {
			c := &r.Cells[i]
			if c.Backend+"/"+c.Setting == setting && c.Test == test && c.Fault == fault {
				f(c)
			}
		}
	}
	change("redis-streams/aof-always", trial.TestCrash, trial.FaultBrokerKill, func(c *trial.Cell) {
		c.Verdict, c.Lost, c.Note = trial.VerdictContradiction, 12, "lost in 1 of 3 crashes"
	})
	change("rabbitmq/quorum", trial.TestLatency, trial.FaultNone, func(c *trial.Cell) {
		c.Verdict, c.InvalidReasons = trial.VerdictSaturated, []string{"held 712 of 1000 messages a second"}
	})
	change("kafka/acks-0", trial.TestCrash, trial.FaultBrokerKill, func(c *trial.Cell) {
		c.Verdict, c.Unconfirmed = trial.VerdictNotReproduced, 6000
		c.Expected = &trial.Expected{Lost: "unacked", Redelivered: "any", LostAtMost: nil, Basis: "S", Why: "nobody answered"}
	})
	change("kafka/acks-1", trial.TestCrash, trial.FaultConsumerKillBeforeAck, func(c *trial.Cell) {
		c.Verdict, c.Redelivered, c.Expected.Basis = trial.VerdictOracleUpdate, 48, "D"
	})
	change("redis-pubsub/default", trial.TestCrash, trial.FaultConsumerKillBeforeAck, func(c *trial.Cell) {
		c.Verdict, c.Valid, c.InvalidReasons = trial.VerdictInvalid, 0, []string{"the victim was idle when it was killed", "did not drain in 20s"}
	})
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Backend == "kafka" && c.Setting == "acks-all" {
			*c = trial.Cell{Backend: c.Backend, Setting: c.Setting, Broker: trial.Broker{Name: "kafka"}, Test: c.Test, Fault: c.Fault, Seed: c.Seed,
				Verdict: trial.VerdictSkipped, InvalidReasons: []string{"no Java 17 here; `make setup` installs it"}}
		}
		if c := &r.Cells[i]; c.Backend == "redis-list" && c.Setting == "no-persistence" {
			c.Broker = trial.Broker{Name: "miniredis", Version: "2.40.0", Emulated: true}
		}
	}
	return r
}

const evil = "<script>alert('x')</script>|\"'`&\n--> 秒杀 =cmd()\u2028\x1b[31m"

// hostile is a result of strings that want out of their place, with nulls,
// negative numbers, two cells of one name and a verdict from the future.
func hostile() trial.Result {
	c := trial.Cell{Backend: evil, Setting: evil, Broker: trial.Broker{Name: evil, Version: evil}, Guarantee: evil, Confirm: evil, Test: trial.TestCrash, Fault: evil,
		Trials: -1, Valid: -1, Counts: ledger.Counts{Lost: -5}, EffectiveSettings: map[string]string{evil: evil}, InvalidReasons: []string{evil},
		Expected: &trial.Expected{Lost: evil, Redelivered: evil, Basis: evil, Why: evil}, Verdict: evil, Note: evil}
	latency := c
	latency.Test, latency.Verdict = trial.TestLatency, trial.VerdictAsExpected
	latency.LatencyMicros = &trial.Latency{EndToEnd: trial.Percentiles{P50: -3, Max: 1 << 62, N: 1 << 62}}
	empty := latency
	empty.LatencyMicros = nil
	sale := c
	sale.Test, sale.Verdict, sale.Sale = trial.TestSale, trial.VerdictAsExpected, &trial.Sale{Sold: 3, Oversold: 3}
	noSale := sale
	noSale.Sale = nil
	other := c
	other.Test = evil
	return trial.Result{Schema: trial.Schema, Run: trial.Run{ID: evil, Commit: evil, Suite: evil, Args: []string{evil}, Host: trial.Host{CPU: evil, Kernel: evil}},
		Cells: []trial.Cell{c, c, latency, empty, sale, noSale, other}}
}
