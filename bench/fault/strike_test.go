package fault

import (
	"slices"
	"testing"

	"queuelab/queue"
)

func TestEveryStrikeHasAWayBackAndSaysWhereItMeansNothing(t *testing.T) {
	var names []string
	for _, s := range Strikes() {
		names = append(names, s.Name, s.HealName)
		if s.Summary == "" || s.HealSummary == "" || s.Inject == nil || s.Heal == nil || s.Means == nil {
			t.Errorf("%s lacks something: %+v", s.Name, s)
		}
		memory := s.Means(Target{Backend: "memory", Caps: queue.Capabilities{Stored: true}})
		if onlyBroker := s.At == AtBroker || s.At == AtProducer; onlyBroker != (memory != "") {
			t.Errorf("%s: got %q for a queue in a process", s.Name, memory)
		}
		if why := s.Means(Target{Backend: "redis-streams", Broker: "redis", Caps: queue.Capabilities{Stored: true}}); why != "" {
			t.Errorf("%s: got %q for a Redis Stream, want that it means something", s.Name, why)
		}
		if why := s.Means(Target{Backend: "redis-pubsub", Broker: "redis"}); (s.Name == "cut-power") != (why != "") {
			t.Errorf("%s: got %q for Pub/Sub, which stores nothing", s.Name, why)
		}
	}
	slices.Sort(names)
	if n := len(names); len(slices.Compact(names)) != n {
		t.Errorf("got %v, want each name once", names)
	}
}
