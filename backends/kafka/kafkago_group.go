package kafka

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// kafkaGo is the client on segmentio/kafka-go.
type kafkaGo struct{ q *topicQueue }

type kafkaGoMember struct {
	c     *consumer
	group *kafkago.ConsumerGroup
}

func (k kafkaGo) join(c *consumer) (member, error) {
	q := k.q
	group, err := kafkago.NewConsumerGroup(kafkago.ConsumerGroupConfig{
		ID:                q.group,
		Brokers:           q.hosts,
		Topics:            []string{q.topic},
		Dialer:            &kafkago.Dialer{ClientID: memberID(), Timeout: q.timeout, DialFunc: c.dialer.connect},
		GroupBalancers:    []kafkago.GroupBalancer{kafkago.RoundRobinGroupBalancer{}},
		StartOffset:       kafkago.FirstOffset,
		SessionTimeout:    q.session,
		RebalanceTimeout:  q.session,
		HeartbeatInterval: q.heartbeat,
		JoinGroupBackoff:  errorEvery,
		Timeout:           q.timeout,
	})
	if err != nil {
		return nil, err
	}
	m := &kafkaGoMember{c: c, group: group}
	c.work.Go(m.follow)
	return m, nil
}

// follow serves one generation after the other.
func (m *kafkaGoMember) follow() {
	c := m.c
	for {
		gen, err := m.group.Next(c.ctx)
		switch {
		case c.ctx.Err() != nil:
			return
		case errors.Is(err, kafkago.RebalanceInProgress), errors.Is(err, kafkago.UnknownMemberId),
			errors.Is(err, kafkago.IllegalGeneration):
			// The group goes on dealing; the next attempt takes part.
		case err != nil:
			c.refused(err)
		default:
			offsets := map[int]int64{}
			for _, a := range gen.Assignments[c.q.topic] {
				offsets[a.ID] = a.Offset
			}
			g := c.begin(deal{generation: int(gen.ID), offsets: offsets, committer: kafkaGoCommitter{gen, c.q.topic}})
			gen.Start(func(ctx context.Context) { serve(ctx, g) })
		}
	}
}

type kafkaGoCommitter struct {
	gen   *kafkago.Generation
	topic string
}

func (k kafkaGoCommitter) commit(offsets map[int]int64) error {
	return k.gen.CommitOffsets(map[string]map[int]int64{k.topic: offsets})
}

// serve fetches until the group ends the generation. The group deals again
// only after serve has returned.
func serve(ctx context.Context, g *generation) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var fetchers sync.WaitGroup
	for _, p := range slices.Clone(g.parts) {
		fetchers.Go(func() { g.fetch(ctx, p) })
	}
	<-ctx.Done()
	fetchers.Wait()
	g.end()
}

func (m *kafkaGoMember) leave() {
	left := make(chan struct{})
	go func() { _ = m.group.Close(); close(left) }()
	select {
	case <-left:
	case <-time.After(m.c.q.timeout):
		m.c.dialer.cut()
		<-left
	}
}
