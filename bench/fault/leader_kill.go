package fault

import (
	"context"
	"errors"
	"slices"
	"time"

	"queuelab/bench/broker"
)

// LeaderKill kills the node that leads the queue while its followers lag: what a
// leader confirms by itself is then nowhere else. On one machine followers lag by
// less than a millisecond, so that they are made to.
func LeaderKill() Fault {
	return Fault{
		Name:      "leader-kill",
		Summary:   "the node that leads the queue gets SIGKILL under load, while those that follow it lag; another takes its place",
		Trials:    3, // the lag that it makes decides, not the moment
		OwnBroker: true,
		Means:     isCluster,
		Run: func(ctx context.Context, s Scene) error {
			return nodeKill(ctx, s, func(ctx context.Context, leader *broker.Broker, followers []*broker.Broker) (*broker.Broker, error) {
				err := lag(ctx, s, followers)
				if err == nil {
					s.Asked()
					err = leader.Kill(ctx)
				}
				if err == nil {
					s.Confirmed()
				}
				return leader, errors.Join(err, undo(ctx, each(followers, (*broker.Broker).Resume)))
			})
		},
	}
}

// FollowerKill kills a node that only follows.
func FollowerKill() Fault {
	return Fault{
		Name:      "follower-kill",
		Summary:   "a node that follows the queue's leader gets SIGKILL under load, and comes back",
		Trials:    3, // the lag that it makes decides, not the moment
		OwnBroker: true,
		Means:     isCluster,
		Run: func(ctx context.Context, s Scene) error {
			return nodeKill(ctx, s, func(ctx context.Context, _ *broker.Broker, followers []*broker.Broker) (*broker.Broker, error) {
				victim := followers[int(s.Moment()*float64(len(followers)))]
				s.Asked()
				err := victim.Kill(ctx)
				if err == nil {
					s.Confirmed()
				}
				return victim, err
			})
		},
	}
}

// isCluster is for faults of a node among others.
func isCluster(t Target) string {
	if !slices.Contains(broker.Clusters(), t.Broker) {
		return "the queue is on one node: there is no other to take its place"
	}
	return ""
}

// The load of the faults of clusters: long enough for an outage, with few enough
// messages to be read back one by one. Those of Redis are large, to be more than
// what the kernel's buffers hold of a replica's link that stands still, since they
// deliver it after all.
const (
	clusterRate    = 80
	clusterSeconds = 8
	clusterPayload = 64 << 10
)

// replicatedLoad publishes to a queue that all nodes have a part in, and returns
// after a moment by chance in the load.
func replicatedLoad(ctx context.Context, s Scene, queueURL string) (Node, error) {
	if err := s.Settle(ctx); err != nil {
		return nil, err
	}
	if err := s.Broker().AwaitReplicas(ctx, s.QueueURL("")); err != nil {
		return nil, err
	}
	payload := 0
	if s.Target().Broker == "redis-sentinel" {
		payload = clusterPayload
	}
	producer, err := load(ctx, s, Role{QueueURL: queueURL, Producer: &Producer{
		Count: clusterRate * clusterSeconds, Rate: clusterRate, Payload: payload,
	}})
	if err != nil {
		return nil, err
	}
	return producer, pass(ctx, time.Second+time.Duration(s.Moment()*float64(time.Second)))
}

// nodeKill lets strike kill a node under load, with no consumer, starts it again,
// and reads everything back once it has all that it missed.
func nodeKill(ctx context.Context, s Scene, strike func(ctx context.Context, leader *broker.Broker, followers []*broker.Broker) (*broker.Broker, error)) error {
	producer, err := replicatedLoad(ctx, s, "")
	if err != nil {
		return err
	}
	leader, followers, err := roles(ctx, s)
	if err != nil {
		return err
	}
	victim, err := strike(ctx, leader, followers)
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := s.Broker().AwaitLeader(ctx, s.QueueURL(""), victim); err != nil {
		return err
	}
	if victim == leader {
		s.Note("led by another node after %.1fs", time.Since(began).Seconds())
	}
	if err := pass(ctx, time.Second); err != nil { // the survivors serve
		return err
	}
	return rejoined(ctx, s, producer, victim)
}

// roles are the node that leads the queue and the others.
func roles(ctx context.Context, s Scene) (leader *broker.Broker, followers []*broker.Broker, err error) {
	leader, err = s.Broker().Leader(ctx, s.QueueURL(""))
	for _, n := range s.Broker().Nodes() {
		if n != leader {
			followers = append(followers, n)
		}
	}
	return leader, followers, err
}

// rejoined starts dead nodes again, and reads everything back once they have all
// that they missed.
func rejoined(ctx context.Context, s Scene, producer Node, dead ...*broker.Broker) error {
	if err := each(dead, (*broker.Broker).Restart)(ctx); err != nil {
		return err
	}
	if err := s.Broker().AwaitReplicas(ctx, s.QueueURL("")); err != nil {
		return err
	}
	if err := producer.Produced(ctx); err != nil {
		return err
	}
	return readBack(ctx, s)
}

// ownLag is how far behind followers may have been by themselves: on a busy
// machine one that Kafka counts as in sync has been seen a second behind.
const ownLag = 2 * time.Second

// lag keeps followers from following for a while. They are left so.
func lag(ctx context.Context, s Scene, followers []*broker.Broker) error {
	// A quorum queue confirms nothing without a majority: there is nothing to lag
	// behind. Kafka's followers ask for what comes, those of Redis are sent it.
	d := map[string]time.Duration{"kafka-3": 500 * time.Millisecond, "redis-sentinel": 3 * time.Second}[s.Target().Broker]
	if d == 0 {
		return nil
	}
	began := time.Now()
	if err := each(followers, (*broker.Broker).Pause)(ctx); err != nil {
		return err
	}
	err := pass(ctx, d)
	s.Facts().Window = (time.Since(began) + ownLag).Milliseconds()
	return err
}

// each does the same to several nodes at once.
func each(nodes []*broker.Broker, do func(*broker.Broker, context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		errs := make(chan error, len(nodes))
		for _, n := range nodes {
			go func() { errs <- do(n, ctx) }()
		}
		var all error
		for range nodes {
			all = errors.Join(all, <-errs)
		}
		return all
	}
}
