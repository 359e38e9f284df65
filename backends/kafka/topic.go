package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"queuelab/queue"
)

// pollEvery is the pause between two looks at something that Kafka does in the
// background: creating and deleting a topic.
const pollEvery = 20 * time.Millisecond

// topicFacts are what the broker says of the topic, whoever created it.
type topicFacts struct {
	partitions int
	replicas   int
	minInSync  int  // replicas that acks=all waits for, at least
	flushEach  bool // every batch is synced before it is confirmed
	maxBatch   int  // bytes of the largest record batch that is taken
	retained   int  // bytes that are kept in each partition, read or not; -1: without a limit
}

// ensureTopic creates the topic where it is missing, waits until each of its
// partitions has a leader, and reads back what holds for it.
func ensureTopic(ctx context.Context, c *cluster, s settings) (topicFacts, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*c.timeout)
	defer cancel()
	lay, err := c.locate(ctx)
	if errors.Is(err, kafkago.UnknownTopicOrPartition) {
		err = c.admin(ctx, func(ctx context.Context, client *kafkago.Client) error { return createTopic(ctx, client, s) })
	}
	if err == nil {
		lay, err = c.awaitLeaders(ctx)
	}
	if err != nil {
		return topicFacts{}, err
	}
	if s.partitionsGiven && len(lay.leaders) != s.partitions {
		return topicFacts{}, fmt.Errorf("kafka: topic %s has %d partitions, not %d: leave partitions= out, or delete the topic first",
			s.topic, len(lay.leaders), s.partitions)
	}
	if s.replicationGiven && lay.replicas != s.replication {
		return topicFacts{}, fmt.Errorf("kafka: topic %s has %d replicas, not %d: leave replication= out, or delete the topic first",
			s.topic, lay.replicas, s.replication)
	}
	facts := topicFacts{partitions: len(lay.leaders), replicas: lay.replicas}
	for {
		err := c.admin(ctx, facts.read(s.topic))
		if err == nil {
			break
		}
		// Any of the brokers may answer, and one that leads no partition may not have
		// heard yet of a topic that the leaders serve.
		if !settling(err) || pause(ctx, pollEvery) != nil {
			return facts, err
		}
	}
	if facts.minInSync > lay.replicas {
		facts.minInSync = lay.replicas
	}
	if s.minInSync != 0 && facts.minInSync != s.minInSync {
		return facts, fmt.Errorf("kafka: topic %s has min.insync.replicas=%d, not %d: leave min-insync= out, or delete the topic first",
			s.topic, facts.minInSync, s.minInSync)
	}
	if s.flush && !facts.flushEach {
		return facts, fmt.Errorf("kafka: topic %s exists without flush.messages=1: leave flush=1 out, or delete the topic first", s.topic)
	}
	return facts, nil
}

func createTopic(ctx context.Context, client *kafkago.Client, s settings) error {
	tc := kafkago.TopicConfig{Topic: s.topic, NumPartitions: s.partitions, ReplicationFactor: s.replication}
	if s.flush {
		tc.ConfigEntries = append(tc.ConfigEntries, kafkago.ConfigEntry{ConfigName: "flush.messages", ConfigValue: "1"})
	}
	if s.replication > 1 {
		// Without it acks=all is content with the leader alone.
		tc.ConfigEntries = append(tc.ConfigEntries, kafkago.ConfigEntry{
			ConfigName: "min.insync.replicas", ConfigValue: strconv.Itoa(cmp.Or(s.minInSync, s.replication/2+1))})
	}
	res, err := client.CreateTopics(ctx, &kafkago.CreateTopicsRequest{Topics: []kafkago.TopicConfig{tc}})
	if err != nil {
		return fmt.Errorf("kafka: create topic %s: %w", s.topic, err)
	}
	if err := res.Errors[s.topic]; err != nil && !errors.Is(err, kafkago.TopicAlreadyExists) {
		return fmt.Errorf("kafka: create topic %s with %d partitions and %d replicas: %w", s.topic, s.partitions, s.replication, err)
	}
	return nil
}

// awaitLeaders waits until each partition has a leader that serves it. That a
// broker names a leader is not enough: for a moment after the creation the
// named one still answers that it does not lead, and a first message would be
// lost on it.
func (c *cluster) awaitLeaders(ctx context.Context) (layout, error) {
	for {
		lay, err := c.locate(ctx)
		if err == nil {
			err = c.admin(ctx, lay.serving(c.topic))
		}
		if err == nil {
			return lay, nil
		}
		if !settling(err) {
			return layout{}, err
		}
		if pause(ctx, pollEvery) != nil {
			return layout{}, fmt.Errorf("kafka: topic %s: gave up waiting for its leaders: %w", c.topic, err)
		}
	}
}

// settling reports whether err is one of a topic that is about to be there.
func settling(err error) bool {
	for _, e := range []kafkago.Error{
		kafkago.UnknownTopicOrPartition, kafkago.LeaderNotAvailable, kafkago.NotLeaderForPartition,
		kafkago.ReplicaNotAvailable, kafkago.OffsetNotAvailable, kafkago.BrokerNotAvailable,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// serving returns the question to each leader whether it leads.
func (l layout) serving(topic string) func(context.Context, *kafkago.Client) error {
	return func(ctx context.Context, client *kafkago.Client) error {
		var asked []kafkago.OffsetRequest
		for i, leader := range l.leaders {
			if leader == "" {
				return kafkago.LeaderNotAvailable
			}
			asked = append(asked, kafkago.LastOffsetOf(i))
		}
		res, err := client.ListOffsets(ctx, &kafkago.ListOffsetsRequest{Topics: map[string][]kafkago.OffsetRequest{topic: asked}})
		if err != nil {
			return err
		}
		if len(res.Topics[topic]) != len(asked) {
			return kafkago.LeaderNotAvailable
		}
		for _, p := range res.Topics[topic] {
			if p.Error != nil {
				return p.Error
			}
		}
		return nil
	}
}

// read returns the request that fills in f from the topic's settings. Who may
// not see them gets what holds for Kafka without settings.
func (f *topicFacts) read(topic string) func(context.Context, *kafkago.Client) error {
	f.minInSync, f.maxBatch, f.retained = 1, 1_000_000, -1
	return func(ctx context.Context, client *kafkago.Client) error {
		res, err := client.DescribeConfigs(ctx, &kafkago.DescribeConfigsRequest{
			Resources: []kafkago.DescribeConfigRequestResource{{
				ResourceType: kafkago.ResourceTypeTopic,
				ResourceName: topic,
				ConfigNames:  []string{"min.insync.replicas", "flush.messages", "max.message.bytes", "retention.bytes"},
			}},
		})
		if err != nil {
			return fmt.Errorf("kafka: read the settings of topic %s: %w", topic, err)
		}
		for _, r := range res.Resources {
			if errors.Is(r.Error, kafkago.TopicAuthorizationFailed) {
				return nil
			}
			if r.Error != nil {
				return fmt.Errorf("kafka: read the settings of topic %s: %w", topic, r.Error)
			}
			for _, e := range r.ConfigEntries {
				n, err := strconv.Atoi(e.ConfigValue)
				if err != nil {
					continue
				}
				switch e.ConfigName {
				case "min.insync.replicas":
					f.minInSync = n
				case "flush.messages":
					f.flushEach = n == 1
				case "max.message.bytes":
					f.maxBatch = n
				case "retention.bytes":
					f.retained = n
				}
			}
		}
		return nil
	}
}

// Delete implements queue.Queue. Kafka deletes in the background; Delete
// returns once the brokers no longer know the topic. The group of this queue is
// deleted too, unless it has members; the broker itself forgets what other
// groups had committed for the topic.
func (q *topicQueue) Delete(ctx context.Context) error {
	err := q.cluster.admin(ctx, func(ctx context.Context, client *kafkago.Client) error {
		res, err := client.DeleteTopics(ctx, &kafkago.DeleteTopicsRequest{Topics: []string{q.topic}})
		if err == nil {
			err = res.Errors[q.topic]
		}
		if err != nil && !errors.Is(err, kafkago.UnknownTopicOrPartition) {
			return err
		}
		groups, err := client.DeleteGroups(ctx, &kafkago.DeleteGroupsRequest{GroupIDs: []string{q.group}})
		if err == nil {
			err = groups.Errors[q.group]
		}
		for _, harmless := range []error{
			kafkago.GroupIdNotFound, kafkago.NonEmptyGroup, kafkago.GroupAuthorizationFailed,
			// No coordinator yet: nobody has ever joined or committed.
			kafkago.NotCoordinatorForGroup, kafkago.GroupCoordinatorNotAvailable, kafkago.GroupLoadInProgress,
		} {
			if errors.Is(err, harmless) {
				return nil
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("kafka: delete topic %s: %w", q.topic, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 4*q.timeout)
	defer cancel()
	for {
		_, err := q.cluster.locate(ctx)
		if errors.Is(err, kafkago.UnknownTopicOrPartition) {
			return nil
		}
		if err == nil {
			err = pause(ctx, pollEvery)
		}
		if err != nil {
			return fmt.Errorf("kafka: delete topic %s: wait until it is gone: %w", q.topic, err)
		}
	}
}

// Backlog implements queue.Backlogger. Ready is the group's lag, which counts
// what is delivered and not yet committed too; the broker does not know the
// difference. There is no dead-letter destination.
func (q *topicQueue) Backlog(ctx context.Context) (queue.Backlog, error) {
	spans, err := q.spans(ctx)
	if err != nil {
		return queue.Backlog{}, fmt.Errorf("kafka: backlog: %w", err)
	}
	b := queue.Backlog{InFlight: -1}
	for _, s := range spans {
		b.Ready += s.last - s.from()
	}
	return b, nil
}

// span is what a partition holds, and how far the group has got.
type span struct {
	first, last int64 // the next message is last
	committed   int64 // -1: nothing
}

// from is where the group goes on: retention may have removed what was next,
// and a broker that lost its disk's cache what was committed.
func (s span) from() int64 { return min(max(s.committed, s.first), s.last) }

// spans asks the brokers about every partition.
func (q *topicQueue) spans(ctx context.Context) (map[int]span, error) {
	spans := map[int]span{}
	err := q.cluster.admin(ctx, func(ctx context.Context, client *kafkago.Client) error {
		parts := make([]int, q.facts.partitions)
		var asked []kafkago.OffsetRequest
		for i := range parts {
			parts[i] = i
			asked = append(asked, kafkago.FirstOffsetOf(i), kafkago.LastOffsetOf(i))
		}
		committed, err := client.OffsetFetch(ctx, &kafkago.OffsetFetchRequest{
			GroupID: q.group, Topics: map[string][]int{q.topic: parts}})
		if err == nil {
			err = committed.Error
		}
		if err != nil {
			return fmt.Errorf("offsets of group %s: %w", q.group, err)
		}
		for _, p := range committed.Topics[q.topic] {
			if p.Error != nil {
				return fmt.Errorf("offset of group %s, partition %d: %w", q.group, p.Partition, p.Error)
			}
			spans[p.Partition] = span{committed: p.CommittedOffset}
		}
		ends, err := client.ListOffsets(ctx, &kafkago.ListOffsetsRequest{
			Topics: map[string][]kafkago.OffsetRequest{q.topic: asked}})
		if err != nil {
			return fmt.Errorf("offsets of topic %s: %w", q.topic, err)
		}
		for _, p := range ends.Topics[q.topic] {
			if p.Error != nil {
				return fmt.Errorf("offsets of topic %s, partition %d: %w", q.topic, p.Partition, p.Error)
			}
			s := spans[p.Partition]
			s.first, s.last = p.FirstOffset, p.LastOffset
			spans[p.Partition] = s
		}
		return nil
	})
	return spans, err
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
