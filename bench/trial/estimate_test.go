package trial

import (
	"testing"
	"time"
)

func cellOf(t *testing.T, setting, fault string, trials int) Spec {
	t.Helper()
	specs, err := Campaign(setting, fault, trials, false)
	if err != nil || len(specs) != 1 {
		t.Fatalf("got %d cells and %v, want one", len(specs), err)
	}
	specs[0].Trials = trials
	return specs[0]
}

// The campaign of 98 cells was measured to take 26 minutes, three trials at once.
func TestTheCampaignIsEstimatedAsItWasMeasured(t *testing.T) {
	specs, err := Campaign("", "", 10, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := Estimate(specs, 3); got < 18*time.Minute || got > 40*time.Minute {
		t.Errorf("got %v for %d cells, want it near 26m", got, len(specs))
	}
	all, err := Campaign("", "", 10, true)
	if err != nil {
		t.Fatal(err)
	}
	if got := Estimate(all, 3); got < 2*time.Hour || got > 12*time.Hour {
		t.Errorf("got %v for all %d cells, want hours", got, len(all))
	}
}

func TestAnEstimateGoesByTheBrokerAndTheFault(t *testing.T) {
	of := func(setting, fault string) time.Duration { return cellOf(t, setting, fault, 1).estimate() }
	for _, c := range []struct{ less, more [2]string }{
		{[2]string{"redis-list/aof-always", "none"}, [2]string{"rabbitmq/quorum", "none"}},
		{[2]string{"kafka/acks-all", "none"}, [2]string{"kafka/acks-all", "broker-kill"}},
		{[2]string{"redis-list/aof-always", "broker-kill"}, [2]string{"rabbitmq/quorum", "broker-kill"}},
		{[2]string{"rabbitmq/quorum", "broker-kill"}, [2]string{"rabbitmq/quorum", "power-loss"}},
		{[2]string{"kafka-3/acks-all", "consumer-kill-mid-handle"}, [2]string{"kafka-3/acks-all", "leader-kill"}},
	} {
		if less, more := of(c.less[0], c.less[1]), of(c.more[0], c.more[1]); less >= more {
			t.Errorf("%v takes %v and %v takes %v, want less for the former", c.less, less, c.more, more)
		}
	}
}

func TestAFaultThatMeansNothingCostsNextToNothing(t *testing.T) {
	for _, c := range []struct {
		setting, fault string
		means          bool
	}{
		{"memory/bounded", "broker-kill", false},  // says the oracle
		{"kafka/acks-all", "leader-kill", false},  // and the fault
		{"kafka-3/acks-all", "power-loss", false}, // and the cluster
		{"kafka-3/acks-all", "lost-reply-publish", false},
		{"redis-pubsub/default", "power-loss", false},
		{"redis-list/aof-always", "queue-limit", false},
		{"redis-streams/no-ack", "del-consumer", false},
		{"redis-streams/aof-always", "del-consumer", true},
		{"redis-streams/maxlen", "queue-limit", true},
		{"rabbitmq/drop-head", "queue-limit", true},
		{"redis-pubsub/default", "broker-kill", true},
		{"kafka-3/acks-all", "leader-kill", true},
	} {
		if got := cellOf(t, c.setting, c.fault, 10).estimate(); (got >= time.Second) != c.means {
			t.Errorf("%s under %s: got %v, want it to be measured: %v", c.setting, c.fault, got, c.means)
		}
	}
}

func TestTrialsOfOneBrokerTakeTurns(t *testing.T) {
	second := func(Spec) time.Duration { return time.Second }
	redis, kafka := cellOf(t, "redis-list/aof-always", "none", 1), cellOf(t, "kafka/acks-all", "none", 1)
	alone := Spec{Setting: kafka.Setting, Test: TestLatency, Fault: FaultNone, Trials: 1}
	for _, c := range []struct {
		specs []Spec
		want  time.Duration
	}{
		{[]Spec{redis, kafka}, time.Second},
		{[]Spec{redis, redis, kafka}, 2 * time.Second},
		{[]Spec{redis, kafka, alone}, 2 * time.Second},
	} {
		if got := schedule(c.specs, 2, second); got != c.want {
			t.Errorf("%v: got %v, want %v", c.specs, got, c.want)
		}
	}
}

func TestWhatIsLeftGoesByWhatWasMeasured(t *testing.T) {
	slow, other := cellOf(t, "kafka/acks-all", "none", 3), cellOf(t, "redis-list/aof-always", "none", 2)
	o := newOutlook([]Spec{slow, other})
	one := func(s Spec) time.Duration { return s.estimate() / time.Duration(s.Trials) }
	check := func(when string, want time.Duration) {
		t.Helper()
		if got := o.time(1); got.Round(time.Millisecond) != want {
			t.Errorf("%s: got %v left, want %v", when, got, want)
		}
	}
	check("before anything is measured", slow.estimate()+other.estimate())
	now := time.Now()
	o.trial(slow, now)
	check("after a trial that an earlier run had measured", 2*one(slow)+other.estimate())
	o.start(slow, now)
	o.trial(slow, now.Add(2*one(slow)))
	check("after one that took twice as long", 2*one(slow)+2*other.estimate())
	o.finish(other) // skipped
	check("after the other cell was skipped", 2*one(slow))
	o.start(slow, now)
	o.trial(slow, now.Add(one(slow)))
	check("at the end", 0)
}
