package fault

import (
	"context"
	"errors"
	"net/url"
	"time"

	"queuelab/bench/broker"
)

// How long a leader is cut off: longer than the others take to choose another, and
// for RabbitMQ longer than its nodes take to give each other up, which is five
// quarters of the 8 s that the lab sets net_ticktime to; its default is a minute.
const (
	apart       = 8 * time.Second
	apartRabbit = 14 * time.Second
	// meeting is how long nodes that had given each other up then hear each other,
	// before somebody restarts the one that was cut off.
	meeting = 2 * time.Second
)

// LeaderPartition cuts the node that leads the queue off from the others, while a
// producer that reaches it goes on: a split brain, if the leader confirms what the
// others have not got.
func LeaderPartition() Fault {
	return Fault{
		Name:      "leader-partition",
		Summary:   "the node that leads the queue is cut off from the others, beside a producer that only knows it, and comes back",
		Trials:    3, // the lag that it makes decides, not the moment
		OwnBroker: true,
		Network:   true,
		Means: func(t Target) string {
			if t.Broker == "redis-sentinel" {
				return "the lab's Sentinels stand apart from the nodes: a master that is cut off has none beside it to keep clients there"
			}
			return isCluster(t)
		},
		Missing: func() string {
			if err := broker.NetworkAvailable(); err != nil {
				return err.Error()
			}
			return ""
		},
		Run: leaderPartition,
	}
}

func leaderPartition(ctx context.Context, s Scene) error {
	if err := s.Broker().AwaitReplicas(ctx, s.QueueURL("")); err != nil {
		return err
	}
	leader, _, err := roles(ctx, s)
	if err != nil {
		return err
	}
	u, err := url.Parse(leader.URL())
	if err != nil {
		return err
	}
	producer, err := replicatedLoad(ctx, s, s.QueueURL(u.Host))
	if err != nil {
		return err
	}
	began := time.Now()
	s.Asked()
	if err := s.Broker().CutOff(leader); err != nil {
		return err
	}
	defer s.Broker().Rejoin()
	// RabbitMQ answers no question about its nodes before they have given up the one
	// that they do not hear.
	if _, err := s.Broker().AwaitLeader(ctx, s.QueueURL(""), leader); err != nil {
		return err
	}
	s.Note("seen to be led by another node after %.1fs", time.Since(began).Seconds())
	rabbit, lasts := s.Target().Scheme == "amqp", apart
	if rabbit {
		lasts = apartRabbit
	}
	if err := pass(ctx, lasts-time.Since(began)); err != nil {
		return err
	}
	s.Broker().Rejoin()
	if rabbit { // each side goes on without the other, also when they meet again
		if err := errors.Join(pass(ctx, meeting), leader.Kill(ctx)); err != nil {
			return err
		}
		s.Confirmed()
		s.Note("its node was restarted when it was back: cluster_partition_handling is ignore")
		return rejoined(ctx, s, producer, leader)
	}
	if err := s.Broker().AwaitReplicas(ctx, s.QueueURL("")); err != nil {
		return err
	}
	// The fault ends only as the old leader learns that it is none: until then it
	// may have confirmed what it then had to throw away.
	s.Confirmed()
	s.Facts().Window = (time.Since(began) + ownLag).Milliseconds()
	return rejoined(ctx, s, producer)
}
