package live

import (
	"fmt"
	"time"
)

// scenario is what a show is about: the load, what the handlers do, and what one
// would press.
type scenario struct {
	Name      string   `json:"name"`
	Title     string   `json:"title"`
	Summary   string   `json:"summary"`
	Point     string   `json:"point"`
	Speed     float64  `json:"speed"` // messages a second, of each lane
	Consumers int      `json:"consumers"`
	Seconds   int      `json:"seconds"` // how long is published
	Settings  []string `json:"settings"`
	Strikes   []string `json:"strikes"`

	busy    float64 // share of the time that the consumers handle messages; above 1 they fall behind
	ackHold float64 // share of that between effect and ack
	keys    string  // see load.ParseKeys
	spike   bool
	unique  bool // handlers are idempotent
	poison  uint64
	orders  bool
	outbox  bool
	retries int
	params  map[string]string // of the queue's URL, by the backend's parameter name where it has one
}

func scenarios() []scenario {
	const (
		list, streams, pubsub    = "redis-list/aof-everysec", "redis-streams/aof-everysec", "redis-pubsub/default"
		classic, quorum, acksAll = "rabbitmq/classic", "rabbitmq/quorum", "kafka/acks-all"
	)
	all := []scenario{
		{Name: "normal", Title: "Normal", Summary: "Buyers publish, consumers keep up, the database commits.",
			Point:    "Without a fault every queue looks alike: the differences are in what happens when something dies.",
			Settings: []string{list, streams, classic, acksAll}, Strikes: []string{"kill-consumer", "kill-broker", "restart-broker"}},
		{Name: "lag", Title: "Lag", Summary: "The handlers are slower than the buyers: a backlog grows.",
			Point:    "A queue hides that you are too slow, until it is full or the buyers have gone. Watch the lag, not the errors.",
			Settings: []string{streams, acksAll}, Strikes: []string{"slow-consumer", "start-consumer", "hurry-consumer"}, busy: 1.6},
		{Name: "back-pressure", Title: "Back-pressure", Summary: "A small bounded queue and slow handlers: it blocks, rejects, or drops the oldest.",
			Point:    "Every bound has an answer to the message that is too many. Know which one yours gives, and to whom.",
			Settings: []string{"memory/bounded", "rabbitmq/reject-publish", "rabbitmq/drop-head", "redis-streams/maxlen"}, Strikes: []string{"slow-consumer", "hurry-consumer"},
			busy: 2, params: map[string]string{"capacity": "20", "max-length": "20", "maxlen": "20"}},
		{Name: "rebalance", Title: "Rebalance", Summary: "Consumers come and go, and the work is dealt out anew.",
			Point:    "Kafka gives whole partitions to consumers and stops them meanwhile; competing consumers just take the next message.",
			Settings: []string{acksAll, streams}, Strikes: []string{"start-consumer", "kill-consumer", "freeze-consumer", "thaw-consumer"}},
		{Name: "order-by-key", Title: "Order by key", Summary: "Three buyers' orders must each stay in order, and there are several consumers.",
			Point:     "Competing consumers overtake one another. A partition by key keeps the order of a key, and no other.",
			Consumers: 3, keys: "uniform:3", Settings: []string{acksAll, streams, classic}, Strikes: []string{"slow-consumer", "kill-consumer"}},
		{Name: "poison", Title: "Poison and dead letters", Summary: "The handler fails for one message in twelve, each time that it comes.",
			Point:    "Without a limit of attempts a poisoned message comes for ever, and on a partition all behind it wait.",
			Settings: []string{streams, quorum, acksAll}, Strikes: []string{"kill-consumer"}, poison: 12},
		{Name: "at-most-once", Title: "At most once", Summary: "The queue forgets what it hands out.",
			Point:    "Whatever a consumer held when it died is gone, and nobody says so.",
			Settings: []string{list, pubsub, "rabbitmq/auto-ack", "kafka/commit-before"}, Strikes: []string{"kill-consumer", "start-consumer"}},
		{Name: "at-least-once", Title: "At least once", Summary: "The queue forgets only what was acked, and the handler is not idempotent.",
			Point:    "Nothing is lost, and who dies between effect and ack has its effect twice.",
			Settings: []string{streams, "redis-list-reliable/aof-everysec", classic, acksAll}, Strikes: []string{"kill-consumer", "start-consumer"}, ackHold: 0.5, retries: 3},
		{Name: "idempotent", Title: "At least once, idempotent", Summary: "The same, and effects are unique by message id.",
			Point:    "The message comes twice and the effect does not: that is all that “exactly once” can mean.",
			Settings: []string{streams, "redis-list-reliable/aof-everysec", classic, acksAll}, Strikes: []string{"kill-consumer", "start-consumer"}, ackHold: 0.5, retries: 3, unique: true},
		{Name: "dual-write", Title: "Dual write", Summary: "The shop commits an order and then publishes its message.",
			Point:    "Whatever dies between the two leaves an order that nobody will ever handle.",
			Settings: []string{classic, streams}, Strikes: []string{"kill-producer", "start-producer", "kill-broker", "restart-broker"}, orders: true},
		{Name: "outbox", Title: "Outbox and inbox", Summary: "The message is committed with its order, and a relay publishes it; the handler is idempotent.",
			Point:    "One transaction and a relay that may publish twice, and an inbox that does not mind.",
			Settings: []string{classic, streams}, Strikes: []string{"kill-producer", "start-producer", "kill-broker", "restart-broker"}, orders: true, outbox: true, unique: true},
		{Name: "spike", Title: "Flash sale", Summary: "Silence, a wall of buyers within a second, and a trickle after it.",
			Point: "The queue takes the wall at once and the handlers take their time: that is what it is for.",
			Speed: 20, Settings: []string{list, streams, classic, quorum, acksAll, "memory/bounded"}, Strikes: []string{"kill-consumer", "kill-broker", "restart-broker"}, spike: true},
	}
	for i := range all {
		s := &all[i]
		s.Speed = max(s.Speed, 10)
		s.Consumers = max(s.Consumers, 2)
		s.Seconds = 60
		if s.busy == 0 {
			s.busy = 0.45 // where one of two consumers dies the other one keeps up
		}
		if s.keys == "" {
			s.keys = "uniform:16"
		}
	}
	return all
}

// mostBusy is the longest that a handler takes in a scenario without strikes.
const mostBusy = 2 * time.Second

// handling is how long a message is held before its effect, and after it. At
// speeds that nobody can follow it is not held at all where the consumers keep up.
func (s scenario) handling(speed float64, consumers int) (before, after time.Duration) {
	if speed > eachUpTo && s.busy <= 1 {
		return 0, 0
	}
	whole := min(time.Duration(s.busy*float64(consumers)/speed*float64(time.Second)), mostBusy)
	after = time.Duration(s.ackHold * float64(whole))
	return whole - after, after
}

// eachUpTo is the highest speed at which messages are handled one by one.
const eachUpTo = 100

// shape is the load's, for a spike; "" is constant.
func (s scenario) shape(speed float64) string {
	if !s.spike {
		return ""
	}
	return fmt.Sprintf("spike:silence=3s,wall=%d/1s,tail=%g", int(speed*10), max(1, speed/5))
}
