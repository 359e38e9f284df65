package trial

import (
	"strings"
	"testing"
	"time"
)

// durable are the settings that may lose no order.
const durable = "redis-streams/aof-everysec,redis-streams/aof-always,rabbitmq/classic,rabbitmq/quorum,kafka/acks-1,kafka/acks-all"

// tested are the settings of the short and of the long form.
func tested() (settings string, needs []string) {
	if soak() {
		return "all", []string{"redis", "rabbitmq", "kafka", "postgres"}
	}
	return "memory,redis-streams/aof-everysec", []string{"redis", "postgres"}
}

func TestTheHarnessNamesEachMutant(t *testing.T) {
	settings, needs := tested()
	for mutant, want := range map[string]struct{ fault, words string }{
		"ack-deleted":            {FaultNone, "an ack does not settle"},
		"ack-early":              {FaultConsumerKillMidHandle, "lost, expected"},
		"drop-one-in-a-thousand": {FaultNone, "1 lost, expected exactly 0"},
		"deliver-one-twice":      {FaultNone, "1 redelivered, expected exactly 0"},
	} {
		t.Run(mutant, func(t *testing.T) {
			lab := newTestLab(t, needs...)
			lab.Mutant = mutant
			for _, c := range measure(t, lab, specsFor(t, settings, TestCrash, want.fault)) {
				name := c.Backend + "/" + c.Setting
				row, err := Lookup(name, c.Fault)
				if err != nil {
					t.Fatal(err)
				}
				// Where the queue forgets on delivery, or dies as a whole, there is
				// no ack to delete, and acking early changes nothing.
				atMostOnce := c.Guarantee == "at most once"
				if mutant == "ack-deleted" && atMostOnce || mutant == "ack-early" && row.Lost != "0" {
					continue
				}
				if c.Verdict != VerdictContradiction || !strings.Contains(c.Note, want.words) {
					t.Errorf("%s under %s with %s: got %s: %s, want a contradiction that says %q", name, c.Fault, mutant, c.Verdict, c.Note, want.words)
				}
			}
		})
	}
}

func TestSoundQueuesAreAsExpected(t *testing.T) {
	settings, needs := tested()
	lab := newTestLab(t, needs...)
	for _, c := range measure(t, lab, specsFor(t, settings, TestCrash, FaultNone, FaultConsumerKillMidHandle, FaultConsumerKillBeforeAck, FaultBrokerKill)) {
		if c.Verdict != VerdictAsExpected && c.Verdict != VerdictNotApplicable {
			t.Errorf("%s/%s under %s: got %s: %s %v", c.Backend, c.Setting, c.Fault, c.Verdict, c.Note, c.InvalidReasons)
		}
	}
}

func TestASaleOverADurableQueueSellsTheStockOnceEach(t *testing.T) {
	lab := newTestLab(t, "redis", "rabbitmq", "kafka", "postgres")
	specs := specsFor(t, "redis-streams/aof-everysec,rabbitmq/quorum,kafka/acks-all", TestSale, FaultNone, FaultServiceKill)
	if soak() {
		specs = specsFor(t, durable, TestSale, FaultNone, FaultServiceKill)
	}
	for i := range specs {
		specs[i].Sale = SaleParams{Buyers: 1500, Stock: 300, Connections: 32, ResultDeadline: 40 * time.Second}
		if soak() {
			specs[i].Trials = 20
			specs[i].Sale = SaleParams{Buyers: 5000, Stock: 500, Connections: 64, ResultDeadline: 2 * time.Minute}
		}
	}
	for _, c := range measure(t, lab, specs) {
		name := c.Backend + "/" + c.Setting
		if c.Verdict != VerdictAsExpected || c.Valid != c.Trials {
			t.Errorf("%s under %s: got %s: %s, %d of %d valid %v", name, c.Fault, c.Verdict, c.Note, c.Valid, c.Trials, c.InvalidReasons)
			continue
		}
		got := *c.Sale
		if got.AnswerMicros == nil || got.CommittedMicros == nil || got.CommittedMicros.N != int64(got.Stock/c.Trials) {
			t.Errorf("%s under %s: got %+v to the answer and %+v to the commit, want both, and one commit for each unit", name, c.Fault, got.AnswerMicros, got.CommittedMicros)
		}
		got.AnswerMicros, got.CommittedMicros = nil, nil
		if want := (Sale{Buyers: got.Buyers, Stock: got.Stock, Sold: got.Stock}); got != want {
			t.Errorf("%s under %s: got %+v, want %+v", name, c.Fault, got, want)
		}
	}
}

func TestAMemoryQueueLosesTheOrdersOfAKilledService(t *testing.T) {
	lab := newTestLab(t)
	specs := specsFor(t, "memory", TestSale, FaultServiceKill)
	specs[0].Trials = 5 // a kill that finds the queue empty loses nothing
	cells := measure(t, lab, specs)
	c := cells[0]
	if c.Verdict != VerdictAsExpected || c.Sale == nil || c.Sale.LostOrders == 0 {
		t.Errorf("got %s: %s, sale %+v, want lost orders", c.Verdict, c.Note, c.Sale)
	}
	if c.Sale != nil && (c.Sale.Oversold != 0 || c.Sale.Double != 0) {
		t.Errorf("got %+v, want nothing oversold and no second order", *c.Sale)
	}
}

func TestLatencyAndThroughputAreMeasuredFromDueTimes(t *testing.T) {
	lab := newTestLab(t)
	specs := append(specsFor(t, "memory", TestLatency, FaultNone), specsFor(t, "memory", TestThroughput, FaultNone)...)
	for i := range specs {
		specs[i].Load.Warmup, specs[i].Load.Duration, specs[i].Load.Saturate = 200*time.Millisecond, time.Second, 500*time.Millisecond
	}
	for _, c := range measure(t, lab, specs) {
		// Other tests share the machine, so that a load may not be held; but
		// then it must say so.
		if c.Verdict != VerdictAsExpected && c.Verdict != VerdictSaturated {
			t.Errorf("%s: got %s: %s", c.Test, c.Verdict, c.Note)
		}
		switch c.Test {
		case TestLatency:
			if l := c.LatencyMicros; l == nil || l.EndToEnd.N != 1000 || l.EndToEnd.Max < l.EndToEnd.P50 || l.Publish.P50 > l.EndToEnd.Max {
				t.Errorf("latency: got %+v, want 1000 messages, the warm-up left out", l)
			}
		case TestThroughput:
			if c.RatePerSecond <= 0 || c.LoopModel != "closed" || c.Lost != 0 {
				t.Errorf("throughput: got %.0f/s, %s loop, %d lost", c.RatePerSecond, c.LoopModel, c.Lost)
			}
		}
	}
}
