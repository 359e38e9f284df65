package kafka

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/produce"

	"queuelab/queue"
)

// lane is the way to one broker: one connection with one request under way,
// while the next one gathers. A lone message is sent at once, and a hundred
// callers share a request, without a timer. One request at a time is also what
// keeps the order, with acks=0 too.
type lane struct {
	p    *publisher
	addr string

	mu      sync.Mutex
	waiting []*part
	running bool

	link *link // used by the running flush only
}

func (l *lane) enqueue(t *part) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.lane = l
	l.waiting = append(l.waiting, t)
	if !l.running {
		l.running = true
		l.p.flushes.Go(l.flush)
	}
}

// result tells what became of t. If that is not known yet its caller gives up:
// t is taken back where it still waits.
func (t *part) result(ctx context.Context) (queue.Outcome, error) {
	l := t.lane
	if l == nil {
		return t.outcome, t.err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch t.state {
	case settled:
		return t.outcome, t.err
	case waiting:
		l.waiting = slices.DeleteFunc(l.waiting, func(other *part) bool { return other == t })
		return queue.Rejected, queue.Reject(fmt.Errorf("kafka: publish: %w before the message was sent", ctx.Err()))
	default:
		return queue.Unknown, fmt.Errorf("kafka: publish: %w while the message was under way", ctx.Err())
	}
}

// flush sends until nothing waits.
func (l *lane) flush() {
	for {
		if linger := l.p.q.linger; linger > 0 {
			_ = pause(l.p.ctx, linger)
		} else {
			// Callers that the last answer woke get to enqueue what they have next.
			runtime.Gosched()
		}
		parts := l.take()
		if parts == nil {
			return
		}
		l.send(parts)
	}
}

// take removes from the front what fits into one request.
func (l *lane) take() []*part {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, messages := 0, 0
	bytes := map[int]int{}
	for ; n < len(l.waiting); n++ {
		t := l.waiting[n]
		messages += len(t.records)
		bytes[t.partition] += t.bytes
		if n > 0 && (messages > l.p.q.batch || bytes[t.partition] > l.p.q.maxBytes()) {
			break
		}
		t.state = underWay
	}
	if n == 0 {
		l.waiting, l.running = nil, false
		return nil
	}
	parts := l.waiting[:n:n]
	l.waiting = l.waiting[n:]
	return parts
}

// send makes one request of the parts and settles each.
func (l *lane) send(parts []*part) {
	request := produceRequest(l.p.q, parts)
	link, err := l.connect()
	if err != nil {
		err = queue.Reject(err)
		l.settle(parts, func(*part) (queue.Outcome, error) { return queue.Rejected, err })
		l.p.ask()
		return
	}
	before := link.wire.written
	_ = link.SetDeadline(time.Now().Add(l.p.q.timeout))
	answer, err := link.RoundTrip(request)
	if err != nil {
		outcome, err := queue.Unknown, fmt.Errorf("kafka: publish to %s: %w", l.addr, err)
		if link.wire.written == before {
			outcome, err = queue.Rejected, queue.Reject(err)
		}
		l.settle(parts, func(*part) (queue.Outcome, error) { return outcome, err })
		l.drop()
		return
	}
	if l.p.q.acks == 0 {
		l.settle(parts, func(*part) (queue.Outcome, error) { return queue.Accepted, nil })
		return
	}
	codes := readCodes(answer)
	l.settle(parts, func(t *part) (queue.Outcome, error) { return l.judge(codes, t.partition) })
}

func (l *lane) settle(parts []*part, judge func(*part) (queue.Outcome, error)) {
	l.mu.Lock()
	for _, t := range parts {
		t.outcome, t.err = judge(t)
		t.state = settled
		t.records = nil
	}
	l.mu.Unlock()
	for _, t := range parts {
		t.done.settle()
	}
}

// connect returns a connection that the broker has not closed, as far as can
// be seen: what is sent into a broken one is unknown, and would not have to be.
func (l *lane) connect() (*link, error) {
	if l.link != nil && !l.link.wire.alive() {
		l.drop()
	}
	if l.link == nil {
		if l.p.ctx.Err() != nil {
			return nil, queue.ErrClosed
		}
		link, err := l.p.q.cluster.connect(l.p.ctx, l.addr)
		if err != nil {
			return nil, err
		}
		link.stop = context.AfterFunc(l.p.ctx, func() { _ = link.Conn.Close() })
		l.link = link
	}
	return l.link, nil
}

func (l *lane) drop() {
	_ = l.link.Close()
	l.link = nil
	l.p.ask()
}

func produceRequest(q *topicQueue, parts []*part) *produce.Request {
	index := map[int]int{}
	var records [][]kafkago.Record
	var partitions []produce.RequestPartition
	for _, t := range parts {
		i, ok := index[t.partition]
		if !ok {
			i = len(partitions)
			index[t.partition] = i
			partitions = append(partitions, produce.RequestPartition{Partition: int32(t.partition)})
			records = append(records, t.records)
			continue
		}
		records[i] = append(records[i], t.records...)
	}
	for i := range partitions {
		partitions[i].RecordSet = protocol.RecordSet{Records: kafkago.NewRecordReader(records[i]...)}
	}
	return &produce.Request{
		Acks:    q.acks,
		Timeout: int32((q.timeout * 4 / 5).Milliseconds()), // so that the broker gives up before we do
		Topics:  []produce.RequestTopic{{Topic: q.topic, Partitions: partitions}},
	}
}

// readCodes returns the error of each partition, nil for those that took
// their messages.
func readCodes(answer protocol.Message) map[int]error {
	codes := map[int]error{}
	res, ok := answer.(*produce.Response)
	if !ok {
		return codes
	}
	for _, t := range res.Topics {
		for _, p := range t.Partitions {
			codes[int(p.Partition)] = nil
			if p.ErrorCode == 0 {
				continue
			}
			err := error(kafkago.Error(p.ErrorCode))
			if p.ErrorMessage != "" {
				err = fmt.Errorf("%w: %s", err, p.ErrorMessage)
			}
			codes[int(p.Partition)] = err
		}
	}
	return codes
}

func (l *lane) judge(codes map[int]error, partition int) (queue.Outcome, error) {
	err, answered := codes[partition]
	if !answered {
		return queue.Unknown, fmt.Errorf("kafka: publish: the broker did not answer for partition %d", partition)
	}
	if err == nil {
		return queue.Accepted, nil
	}
	for _, astray := range []kafkago.Error{kafkago.NotLeaderForPartition, kafkago.UnknownTopicOrPartition, kafkago.LeaderNotAvailable} {
		if errors.Is(err, astray) {
			l.p.ask()
		}
	}
	err = fmt.Errorf("kafka: publish to partition %d: %w", partition, err)
	if refused(err, l.p.q.acks == acksAll && l.p.q.facts.replicas > 1) {
		return queue.Rejected, queue.Reject(err)
	}
	return queue.Unknown, err
}

// refused reports whether the broker says so before it appends. A leader that
// is deposed while it waits for its replicas has appended already, and what it
// appended may survive.
func refused(err error, waitsForReplicas bool) bool {
	if errors.Is(err, kafkago.NotLeaderForPartition) {
		return !waitsForReplicas
	}
	for _, certain := range []kafkago.Error{
		kafkago.InvalidMessage, kafkago.UnknownTopicOrPartition, kafkago.InvalidMessageSize,
		kafkago.LeaderNotAvailable, kafkago.MessageSizeTooLarge, kafkago.InvalidTopic,
		kafkago.RecordListTooLarge, kafkago.NotEnoughReplicas, kafkago.InvalidRequiredAcks,
		kafkago.TopicAuthorizationFailed, kafkago.ClusterAuthorizationFailed, kafkago.InvalidTimestamp,
		kafkago.UnsupportedVersion, kafkago.InvalidRequest, kafkago.UnsupportedForMessageFormat,
		kafkago.PolicyViolation, kafkago.InvalidRecord,
	} {
		if errors.Is(err, certain) {
			return true
		}
	}
	return false
}
