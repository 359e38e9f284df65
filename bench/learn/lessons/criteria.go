package lessons

import (
	"slices"

	"queuelab/bench/learn"
)

// contender is a queue that is compared by a criterion.
type contender struct {
	backend string
	params  []string
}

// six are the queues that every comparison is about, with the shortest leases
// that they have; more are parameters beyond those.
func six(more map[string][]string) []contender {
	cs := []contender{
		{"memory", nil}, {"redis-list", nil}, {"redis-pubsub", nil}, {"redis-streams", []string{"claim=1s"}},
		// The settling time is for a broker that is killed right after the queue was made.
		{"rabbitmq", []string{"settle=0s"}}, {"kafka", []string{"session=1500ms"}},
	}
	for i := range cs {
		cs[i].params = slices.Concat(cs[i].params, more[cs[i].backend])
	}
	return cs
}

// sixNeed are the brokers of the six.
func sixNeed() []learn.Need {
	return []learn.Need{{Kind: "redis"}, {Kind: "rabbitmq"}, {Kind: "kafka"}}
}
