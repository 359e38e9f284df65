package choose

import (
	"strings"
	"testing"
	"time"

	"queuelab/bench/trial"
)

// with is the evidence of these cells of redis-streams/aof-always, or of whatever
// they say.
func with(t *testing.T, cells ...trial.Cell) *Evidence {
	t.Helper()
	for i := range cells {
		c := &cells[i]
		if c.Backend == "" {
			c.Backend, c.Setting = "redis-streams", "aof-always"
		}
		if c.Verdict == "" {
			c.Verdict = trial.VerdictAsExpected
		}
	}
	e, err := New(Source{"drawn up", trial.Result{Schema: 1, Run: trial.Run{Host: trial.Host{MemoryBytes: 8 << 30}}, Cells: cells}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// reason is what was found of the only need.
func reason(t *testing.T, e *Evidence, setting string, n Needs) Reason {
	t.Helper()
	for _, c := range e.ranked(n, false).Settings {
		if c.Setting == setting {
			return c.Reasons[0]
		}
	}
	t.Fatalf("there is no setting %s", setting)
	return Reason{}
}

func latencyCell(offered float64, valid int, p99, low, high float64) trial.Cell {
	return trial.Cell{
		Test: trial.TestLatency, Fault: trial.FaultNone, Valid: valid, RatePerSecond: offered,
		LatencyMicros: &trial.Latency{EndToEnd: trial.Percentiles{P99: int64(p99), N: 10_000}},
		Spread:        map[string]trial.Interval{"endToEnd.p99": {Median: p99, Low: low, High: high, N: valid}},
	}
}

func heldCell(valid int, rate, low, high float64) trial.Cell {
	return trial.Cell{Test: trial.TestThroughput, Fault: trial.FaultNone, Valid: valid, RatePerSecond: rate, Spread: map[string]trial.Interval{"ratePerSecond": {Median: rate, Low: low, High: high, N: valid}}}
}

func as(verdict string, c trial.Cell) trial.Cell { c.Verdict = verdict; return c }

func emulated(c trial.Cell) trial.Cell { c.Broker.Emulated = true; return c }

func TestALoadIsHeldAsFarAsItWasMeasured(t *testing.T) {
	few := latencyCell(1000, 6, 900, 800, 990)
	few.LatencyMicros.EndToEnd.N = 999
	slo := trial.Cell{Test: trial.TestSLO, Valid: 1, SLO: &trial.SLO{HighestRate: 8000, Curve: []trial.RatePoint{
		{Offered: 8000, Achieved: 8000, LatencyMicros: &trial.Latency{EndToEnd: trial.Percentiles{P99: 900, N: 5000}}},
		{Offered: 9000, Achieved: 7000, LatencyMicros: &trial.Latency{EndToEnd: trial.Percentiles{P99: 900, N: 5000}}},
	}}}
	for name, c := range map[string]struct {
		needs Needs
		cells []trial.Cell
		want  Verdict
		why   string
	}{
		"a rate that was held":                {Needs{Rate: 5000}, []trial.Cell{heldCell(6, 6000, 5100, 7000)}, Yes, "6000/s held"},
		"a rate that was not":                 {Needs{Rate: 8000}, []trial.Cell{heldCell(6, 6000, 5100, 7000)}, No, "no more than 6000/s"},
		"a rate within the interval":          {Needs{Rate: 6500}, []trial.Cell{heldCell(6, 6000, 5100, 7000)}, Unknown, "both sides"},
		"a rate on a stand-in":                {Needs{Rate: 5000}, []trial.Cell{emulated(heldCell(6, 6000, 5100, 7000))}, Unknown, "not measured"},
		"a rate in trials that prove nothing": {Needs{Rate: 5000}, []trial.Cell{as(trial.VerdictInvalid, heldCell(6, 6000, 5100, 7000))}, Unknown, "not measured"},
		"a rate that was offered":             {Needs{Rate: 1000}, []trial.Cell{latencyCell(1000, 1, 900, 900, 900)}, Yes, "offered and held"},
		"a rate that was not kept up":         {Needs{Rate: 1000}, []trial.Cell{as(trial.VerdictSaturated, latencyCell(1000, 1, 900, 900, 900))}, Unknown, "not measured"},
		"a rate under a promise":              {Needs{Rate: 8000}, []trial.Cell{slo}, Yes, "8000/s"},
		"a rate beyond the promise":           {Needs{Rate: 8001}, []trial.Cell{slo}, Unknown, "not measured"},

		"a p99":                            {Needs{P99: time.Millisecond}, []trial.Cell{latencyCell(1000, 6, 900, 800, 990)}, Yes, "p99 900 µs at 1000/s"},
		"a p99 that is too long":           {Needs{P99: 700 * time.Microsecond}, []trial.Cell{latencyCell(1000, 6, 900, 800, 990)}, No, "p99 900 µs"},
		"a p99 within the interval":        {Needs{P99: 950 * time.Microsecond}, []trial.Cell{latencyCell(1000, 6, 900, 800, 990)}, Unknown, "both sides"},
		"a p99 of too few messages":        {Needs{P99: time.Millisecond}, []trial.Cell{few}, Unknown, "not measured"},
		"a p99 of a rate not kept up":      {Needs{P99: time.Millisecond}, []trial.Cell{as(trial.VerdictSaturated, latencyCell(1000, 6, 900, 800, 990))}, Unknown, "not held"},
		"a p99 at a higher rate of a step": {Needs{P99: time.Millisecond}, []trial.Cell{slo}, Yes, "8000/s"},
		"a p99 at the lower rate of two":   {Needs{P99: time.Millisecond}, []trial.Cell{latencyCell(1000, 6, 900, 800, 990), latencyCell(9000, 6, 5000, 4000, 6000)}, Yes, "900 µs"},
		"a p99 in one result of two":       {Needs{P99: 700 * time.Microsecond}, []trial.Cell{latencyCell(1000, 6, 600, 500, 690), latencyCell(1000, 6, 900, 800, 990)}, Yes, "600 µs"},
	} {
		r := reason(t, with(t, c.cells...), "redis-streams/aof-always", c.needs)
		if r.Verdict != c.want || !strings.Contains(r.Why, c.why) {
			t.Errorf("%s: got %s: %s, want %s: %s", name, r.Verdict, r.Why, c.want, c.why)
		}
	}
	// At a rate: the second reason.
	fast, slow := latencyCell(1000, 6, 900, 800, 990), latencyCell(1000, 6, 9000, 8000, 9900)
	for name, c := range map[string]struct {
		rate  float64
		cells []trial.Cell
		want  Verdict
	}{
		"fast at as much":               {1000, []trial.Cell{fast}, Yes},
		"fast at more":                  {500, []trial.Cell{fast}, Yes},
		"fast at less":                  {5000, []trial.Cell{fast}, Unknown},
		"slow at less":                  {5000, []trial.Cell{slow}, No},
		"slow at as much":               {1000, []trial.Cell{slow}, No},
		"slow at far more":              {100, []trial.Cell{slow}, Unknown},
		"slow in the second result":     {1000, []trial.Cell{fast, slow}, Yes},
		"slow at less, fast at as much": {2000, []trial.Cell{slow, latencyCell(2000, 6, 900, 800, 990)}, No},
		"fast in a step of a search":    {8000, []trial.Cell{slo}, Yes},
		"fast in no step of that rate":  {8500, []trial.Cell{slo}, Unknown},
	} {
		for _, s := range with(t, c.cells...).ranked(Needs{Rate: c.rate, P99: time.Millisecond}, false).Settings {
			if s.Setting == "redis-streams/aof-always" && s.Reasons[1].Verdict != c.want {
				t.Errorf("%s: got %+v, want %s", name, s.Reasons[1], c.want)
			}
		}
	}
}

func TestABacklogNeedsAPlace(t *testing.T) {
	waited := trial.Cell{Test: trial.TestFault, Fault: trial.FaultBrokerKill, Valid: 3, BacklogAtFault: 3_000_000, PayloadBytes: 100}
	for name, c := range map[string]struct {
		setting string
		backlog int64
		cells   []trial.Cell
		want    Verdict
		why     string
	}{
		"that was there":              {"redis-streams/aof-always", 1_000_000, []trial.Cell{waited}, Yes, "1,000,000 waited"},
		"in memory that there is":     {"redis-streams/aof-always", 1_000_001, []trial.Cell{waited}, Yes, "of the 8 GiB"},
		"in memory that there is not": {"redis-streams/aof-always", 100_000_000, []trial.Cell{waited}, No, "37.3 GiB"},
		"in memory of nobody knows":   {"redis-streams/aof-always", 100_000_000, nil, Unknown, "37.3 GiB"},
		"in memory that anybody has":  {"redis-streams/aof-always", 1_000_000, nil, Yes, "in memory"},
		"on a disk":                   {"kafka/acks-all", 100_000_000, nil, Yes, "on disk"},
		"in the limit of a URL":       {"rabbitmq/reject-publish", 2000, nil, Yes, "on disk"},
		"beyond the limit of a URL":   {"rabbitmq/reject-publish", 2001, nil, No, "max-length=2000"},
		"where the oldest are lost":   {"kafka/retention", 10, nil, No, "drops its oldest"},
		"that nobody keeps":           {"redis-pubsub/default", 10, nil, No, "nobody hears"},
		"in a process":                {"memory/bounded", 1025, nil, No, "capacity=1024"},
	} {
		if r := reason(t, with(t, c.cells...), c.setting, Needs{Backlog: c.backlog}); r.Verdict != c.want || !strings.Contains(r.Why, c.why) {
			t.Errorf("%s: got %s: %s, want %s: %s", name, r.Verdict, r.Why, c.want, c.why)
		}
	}
}

func fallen(backend, setting, fault string, valid int, lost int64) trial.Cell {
	c := trial.Cell{Backend: backend, Setting: setting, Test: trial.TestFault, Fault: fault, Valid: valid, Trials: valid}
	c.Lost = lost
	return c
}

func TestALossIsJudgedByWhatWasMeasuredAndThenByTheOracle(t *testing.T) {
	for name, c := range map[string]struct {
		setting string
		loses   string
		cells   []trial.Cell
		want    Verdict
		why     string
	}{
		"as expected, and not tried":          {"rabbitmq/quorum", NothingOnCrash, nil, Yes, "nothing expected to be lost under broker-kill, which was not tried"},
		"as expected, in one trial":           {"rabbitmq/quorum", NothingOnCrash, []trial.Cell{fallen("rabbitmq", "quorum", trial.FaultBrokerKill, 1, 0)}, Yes, "nothing lost under broker-kill"},
		"lost against all expectation":        {"rabbitmq/quorum", NothingOnCrash, []trial.Cell{fallen("rabbitmq", "quorum", trial.FaultBrokerKill, 10, 0), fallen("rabbitmq", "quorum", trial.FaultBrokerKill, 10, 1)}, No, "loses messages under broker-kill"},
		"something else was wrong":            {"rabbitmq/quorum", NothingOnCrash, []trial.Cell{as(trial.VerdictContradiction, fallen("rabbitmq", "quorum", trial.FaultBrokerKill, 10, 0))}, Unknown, "something is wrong"},
		"nobody knows":                        {"rabbitmq/no-mandatory", NothingOnPowerLoss, nil, Unknown, "not known"},
		"nobody knew, and too few":            {"rabbitmq/no-mandatory", NothingOnPowerLoss, []trial.Cell{fallen("rabbitmq", "no-mandatory", powerLoss, 5, 0)}, Unknown, "6 are the least"},
		"nobody knew, and enough":             {"rabbitmq/no-mandatory", NothingOnPowerLoss, []trial.Cell{fallen("rabbitmq", "no-mandatory", powerLoss, 6, 0)}, Yes, "nothing lost under power-loss"},
		"a loss that did not show":            {"redis-streams/aof-everysec", NothingOnCrash, []trial.Cell{fallen("redis-streams", "aof-everysec", slowFsync, 30, 0), fallen("redis-streams", "aof-everysec", "out-of-memory", 3, 0)}, Unknown, "did not show in 30 trials"},
		"a slow disk, expected":               {"redis-streams/aof-everysec", NothingOnCrash, nil, No, "slow-fsync"},
		"a slow disk, by its twin":            {"redis-zset/aof-everysec", NothingOnCrash, nil, No, "deduced from redis-streams/aof-everysec"},
		"a leader, expected":                  {"kafka-3/acks-1", NothingOnCrash, nil, No, "leader-kill"},
		"a cluster's power":                   {"kafka-3/acks-all", NothingOnPowerLoss, nil, Unknown, "cannot do that to a cluster"},
		"a page cache":                        {"kafka/acks-all", NothingOnPowerLoss, nil, No, "operating system"},
		"a synced log":                        {"kafka/acks-all-flush", NothingOnPowerLoss, nil, Yes, "power-loss"},
		"trials that prove nothing":           {"rabbitmq/no-mandatory", NothingOnPowerLoss, []trial.Cell{as(trial.VerdictInvalid, fallen("rabbitmq", "no-mandatory", powerLoss, 6, 0))}, Unknown, "not known"},
		"a queue in a process":                {"memory/bounded", NothingOnCrash, nil, No, "memory"},
		"a full queue that forgets":           {"redis-streams/maxlen", NothingOnCrash, nil, No, "drops its oldest"},
		"a pop that is written down too late": {"redis-doing/aof-everysec", NothingOnCrash, nil, No, "just after it took"},
		"nobody who answers":                  {"rabbitmq/no-confirm", NothingOnCrash, nil, No, "nobody answers"},
	} {
		if r := reason(t, with(t, c.cells...), c.setting, Needs{Loses: c.loses}); r.Verdict != c.want || !strings.Contains(r.Why, c.why) {
			t.Errorf("%s: got %s: %s, want %s: %s", name, r.Verdict, r.Why, c.want, c.why)
		}
	}
}

func TestAMeasurementOverrulesAClaim(t *testing.T) {
	shuffled := latencyCell(1000, 1, 900, 900, 900)
	shuffled.Reordered = 3
	twice := fallen("redis-list", "no-persistence", trial.FaultConsumerKillMidHandle, 3, 0)
	twice.Redelivered = 2
	for name, c := range map[string]struct {
		setting string
		must    string
		cell    trial.Cell
	}{
		"durable":         {"redis-streams/aof-always", "durable", fallen("redis-streams", "aof-always", trial.FaultBrokerKill, 3, 1)},
		"at least once":   {"redis-streams/aof-always", "at-least-once", fallen("redis-streams", "aof-always", trial.FaultConsumerKillBeforeAck, 3, 1)},
		"at most once":    {"redis-list/no-persistence", "at-most-once", twice},
		"ordered per key": {"redis-streams/aof-always", "ordered-per-key", shuffled},
	} {
		n := Needs{Must: []string{c.must}}
		if r := reason(t, with(t), c.setting, n); r.Verdict != Yes {
			t.Errorf("%s: got %s: %s of the claim alone, want yes", name, r.Verdict, r.Why)
		}
		if r := reason(t, with(t, c.cell), c.setting, n); r.Verdict != No || !strings.Contains(r.Why, "measured otherwise") || r.Proof[len(r.Proof)-1].Kind != Measured {
			t.Errorf("%s: got %+v, want a no that was measured", name, r)
		}
	}
}

func TestASettingOfWhichNothingIsClaimedHasNothing(t *testing.T) {
	e := with(t)
	e.Claims = nil
	for _, f := range []string{"durable", "competing", "replay", "bounded", "stored", "ordered-per-key"} {
		if r := reason(t, e, "kafka/acks-all", Needs{Must: []string{f}}); r.Verdict != Unknown {
			t.Errorf("%s: got %s: %s, want unknown", f, r.Verdict, r.Why)
		}
	}
	if r := reason(t, e, "kafka/acks-all-flush", Needs{Loses: NothingOnPowerLoss}); r.Verdict != Unknown {
		t.Errorf("got %s: %s, want unknown", r.Verdict, r.Why)
	}
}

func TestAPopThatIsWrittenDownTooLateIsNotAtLeastOnce(t *testing.T) {
	if r := reason(t, with(t), "redis-doing/aof-everysec", Needs{Must: []string{"at-least-once"}}); r.Verdict != No || !strings.Contains(r.Why, "just after it took") {
		t.Errorf("got %s: %s, want no", r.Verdict, r.Why)
	}
}

func TestANeedThatNobodyMeetsIsTheWholeConflict(t *testing.T) {
	e := with(t)
	e.Settings = e.Settings[:1] // memory/bounded
	if got := e.ranked(Needs{Must: []string{"durable", "competing", "nack"}}, false).Conflict; len(got) != 1 || got[0] != "durable" {
		t.Errorf("got %v, want durable alone", got)
	}
}

func TestTrialsWithoutALossSayWhatTheyExclude(t *testing.T) {
	m := stored(t).worst("rabbitmq/quorum", powerLoss)
	if got := m.lossProof().Bound; got != "above 25.9 % per trial excluded at 95 %" {
		t.Errorf("got %q of 10 trials, want what they exclude", got)
	}
}
