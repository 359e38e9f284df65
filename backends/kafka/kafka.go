// Package kafka is a queue on one Kafka topic, over one of two client
// libraries: segmentio/kafka-go, or twmb/franz-go with client=franz. What it
// promises is the same with both, and both can be in one group.
//
// # Delivery
//
// At least once. Consumers of one group compete: each partition belongs to one
// of them, so at most as many consumers as partitions get messages. Groups
// each get everything, from the first message that the topic still holds. A
// message with a key always goes to the partition of that key, and one
// partition is one order; messages without a key are dealt out in turn.
//
// An Ack marks its deliveries as done and then commits the partition's
// finished prefix, the offset up to which everything is done. It returns nil
// when the group's coordinator has answered; Acks at the same time share one
// commit. An Ack beyond an unsettled delivery cannot be told to Kafka, which
// keeps one number per partition: it is nil once it is recorded here, and it
// reaches the broker with the Ack that closes the gap. If the consumer ends
// before that, what was finished beyond the gap comes again. Once
// max-uncommitted deliveries of a partition are finished beyond a gap, nothing
// more of that partition is delivered until the gap closes.
//
// When consumers come or go, Kafka deals the partitions out anew. Deliveries
// in hand may still be settled for a short while (a quarter of the session, at
// most one second), and the rebalance waits for that; later an Ack waits for
// the outcome. A partition that stays with its consumer goes on as if nothing
// had happened. What is unsettled of one that moves is delivered again by its
// new consumer, and a late Ack of the old delivery is ErrLeaseLost. Nothing is
// committed for a generation that is over.
//
// That is commit=after. The others commit whatever the handler does, and are at
// most once; Ack settles in this process only and never fails:
//
//   - before: Receive commits what it is about to return, and waits for the answer.
//   - auto: a timer commits what Receive has returned, as kafka-go's Reader with
//     a CommitInterval does. A killed consumer loses what it held at the last
//     tick, and what was done since the last tick comes again.
//   - poll: the timer commits only what was acked, and what was returned before the
//     last Receive began, as Java's automatic commit does. Whoever handles what one Receive
//     returned before the next one loses nothing by a kill; whoever hands it to
//     other goroutines does.
//
// With auto and poll, Close commits what was returned.
//
// There is no Nack, attempts are not counted, and there is no broker-side
// dead-letter destination.
//
// The queue is a queue.Replayer: what a group has committed is no matter to it, and
// how long messages are kept is the topic's retention. An offset is written OFFSET,
// for every partition, or PARTITION:OFFSET,..., for those that are named and no
// others. A replay that comes after what retention has removed begins with the
// oldest message that is left.
//
// Retention asks nobody whether a message was read: where the topic has a
// retention.bytes the oldest beyond it are dropped, accepted or not, and a group
// that had not got so far goes on with the oldest that is left, without an error.
// Kafka's own limit, seven days, is not called dropping here.
//
// A publish is rejected where Kafka certainly did not store it: the broker
// cannot be reached, or it says so before it appends (too large, not enough
// replicas, not authorised). After a time-out, a broken connection or an error
// that may come after the append it is unknown. Nothing is sent twice here, but
// with retries, when the client's own producer is used. It sends again what failed,
// and says nothing of it. kafka-go's has no means to see that an earlier try was
// stored. franz-go's is idempotent: the broker knows each batch by its number, and
// stores it once. What is tried again by the caller has another number, and is
// another message.
//
// # URL
//
//	kafka://host:9092,host2:9092/TOPIC?parameters
//
//	client           kafka-go or franz (kafka-go)
//	partitions       of a topic that is created (4); if given, an existing topic must have as many
//	replication      of a topic that is created (1); if given, an existing topic must have as much.
//	                 Above 1, a new topic gets min.insync.replicas = a majority
//	min-insync       that instead; if given, an existing topic must have as many
//	flush            1: a new topic gets flush.messages=1, each batch is synced before it is confirmed (0)
//	acks             all, 1 or 0: who confirms a publish (all)
//	retries          tries of the client's own producer after the first, 0 to 100; 0: its producer is not used (0).
//	                 franz-go's wants acks=all, has no use for batch, and does not give up a message that
//	                 may be stored: it goes on until there is an answer, or the caller does not wait
//	group            consumer group (default); the broker knows it as TOPIC.GROUP, so that
//	                 queues of one group name do not rebalance each other
//	linger           how long to gather before a request to a partition leader (0). There is
//	                 always one request under way and the next one gathers meanwhile
//	batch            most messages in one request (2000)
//	session          a dead consumer's partitions are dealt out after this (6s); the
//	                 broker's group.min.session.timeout.ms bounds it from below
//	heartbeat        how often a consumer reports, and so how soon it sees a rebalance (a fifth of the session, at most 500ms)
//	max-wait         how long a broker holds an empty fetch (500ms)
//	fetch-bytes      most bytes in one fetch of a partition (1048576)
//	prefetch         a partition is fetched again when fewer than this many wait here (1000).
//	                 franz-go fetches all partitions together, one fetch ahead of that
//	max-uncommitted  most deliveries of a partition that are done beyond one that is not (10000)
//	commit           when offsets are committed: after, before, auto or poll, see Delivery (after)
//	commit-interval  between two commits, with commit=auto and commit=poll (5s)
//	timeout          for one request to a broker (5s)
//	preset           latency: linger=0, prefetch=100 · throughput: batch=5000, prefetch=5000, fetch-bytes=4194304
//
// # Clients
//
// Neither library's producer is used, but with retries: both retry or gather by a
// timer, and do not say which failed message may have been stored. Record batches are written
// here and sent as they are, one request per broker at a time, over kafka-go's
// or franz-go's connections and protocol. A batch is as large as what the
// callers have brought while the one before it was under way, so that no timer
// is needed.
//
// Group membership is the library's. With kafka-go each partition is fetched
// over a connection of its own, and records are read here, which takes no
// allocation for each; with franz-go fetching and reading are the library's too,
// for all partitions of a broker at once. Records in the message format before
// version 2 (Kafka 0.11, 2017) are not read with kafka-go.
//
// # Crash behaviour
//
// With acks 1 or all, one replica: a confirmed message is in the page cache of
// the broker's host, because Kafka does not sync before it answers. It
// survives kill -9 of the broker, not a power cut; with flush=1 it survives
// that too. With acks=all and at least two in-sync replicas asked for, it is
// on that many hosts. With acks=0 nobody answers: nil means that the bytes
// were written to a socket.
//
// A consumer that is killed keeps its partitions until its session times out;
// only then do others get them, with everything that was not committed. A
// consumer that is closed commits what is finished and leaves at once.
// Publishers and consumers of a broker that restarts connect again.
package kafka

import (
	"context"
	"net/url"
	"sync"

	"queuelab/queue"
)

// Open opens the topic that u names. It creates the topic where it is missing
// and returns once every partition has a leader, so that the first message is
// not lost.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	s, err := parse(u)
	if err != nil {
		return nil, err
	}
	c := &cluster{hosts: s.hosts, topic: s.topic, timeout: s.timeout}
	t, err := ensureTopic(ctx, c, s)
	if err != nil {
		return nil, err
	}
	q := &topicQueue{settings: s, cluster: c, facts: t, open: map[closer]struct{}{}}
	q.client = kafkaGo{q}
	if s.franz {
		q.client = franz{q}
	}
	return q, nil
}

type closer interface{ Close() error }

type topicQueue struct {
	settings
	cluster *cluster
	facts   topicFacts
	client  client

	mu     sync.Mutex
	closed bool
	open   map[closer]struct{} // publishers and consumers to close with the queue
}

// Capabilities implements queue.Queue.
func (q *topicQueue) Capabilities() queue.Capabilities {
	caps := queue.Capabilities{
		Guarantee:     queue.AtLeastOnce,
		Confirm:       q.confirm(),
		AckConfirmed:  true,
		Attempts:      queue.NotCounted,
		Groups:        true,
		OrderedPerKey: true,
		Stored:        true,
		Durable:       q.acks != 0,
		DropsOldest:   q.facts.retained >= 0,
		Shared:        true,
		LeaseFenced:   true,
		Replay:        true,
	}
	if q.commit != commitAfter {
		caps.Guarantee, caps.AckConfirmed, caps.LeaseFenced = queue.AtMostOnce, false, false
	}
	return caps
}

func (q *topicQueue) confirm() queue.Confirm {
	switch {
	case q.acks == 0:
		return queue.ConfirmNone
	case q.acks == acksAll && q.facts.minInSync > 1:
		return queue.ConfirmReplicas
	case q.facts.flushEach:
		return queue.ConfirmDisk
	default:
		return queue.ConfirmOS
	}
}

// Publisher implements queue.Queue. It connects with the first message.
func (q *topicQueue) Publisher(ctx context.Context) (queue.Publisher, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var p queue.Publisher = newPublisher(q)
	if q.retries > 0 {
		var err error
		if p, err = newRetrier(q); err != nil {
			return nil, err
		}
	}
	if err := q.track(p); err != nil {
		return nil, err
	}
	return p, nil
}

// Consumer implements queue.Queue. It returns once the group has dealt out its
// partitions; where they outnumber the consumers' share, that may be none.
func (q *topicQueue) Consumer(ctx context.Context) (queue.Consumer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := newConsumer(q)
	if err != nil {
		return nil, err
	}
	if err := q.track(c); err != nil {
		return nil, err
	}
	if err := c.join(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// track remembers what to close with the queue; it closes what comes too late.
func (q *topicQueue) track(c closer) error {
	q.mu.Lock()
	closed := q.closed
	if !closed {
		q.open[c] = struct{}{}
	}
	q.mu.Unlock()
	if closed {
		_ = c.Close()
		return queue.ErrClosed
	}
	return nil
}

func (q *topicQueue) forget(c closer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, c)
}

// Close implements queue.Queue.
func (q *topicQueue) Close() error {
	q.mu.Lock()
	q.closed = true
	open := q.open
	q.open = nil
	q.mu.Unlock()
	var wg sync.WaitGroup
	for c := range open {
		wg.Go(func() { _ = c.Close() })
	}
	wg.Wait()
	return nil
}
