package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"

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

	// Used by the running flush only, but for encoding.
	carrier  carrier
	batches  []batch
	encoded  []byte
	encoding sync.Mutex // held while messages are read: what a caller gave is its own again after Publish
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
	state, outcome, err := t.state, t.outcome, t.err
	if state == waiting {
		l.waiting = slices.DeleteFunc(l.waiting, func(other *part) bool { return other == t })
	}
	l.mu.Unlock()
	switch state {
	case settled:
		return outcome, err
	case waiting:
		return queue.Rejected, queue.Reject(fmt.Errorf("kafka: publish: %w before the message was sent", ctx.Err()))
	default:
		// Until nothing reads the messages any more: take comes under this lock.
		l.encoding.Lock()
		defer l.encoding.Unlock()
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
		l.encoding.Lock()
		batches := l.take()
		l.encode(batches)
		l.encoding.Unlock()
		if batches == nil {
			return
		}
		l.send(batches)
	}
}

// take removes from the front what fits into one request, by partition.
func (l *lane) take() []batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.batches {
		clear(l.batches[i].parts)
	}
	batches := l.batches[:0]
	messages, n := 0, 0
	for ; n < len(l.waiting); n++ {
		t := l.waiting[n]
		messages += len(t.places)
		i := slices.IndexFunc(batches, func(b batch) bool { return b.partition == t.partition })
		if i < 0 {
			if n > 0 && messages > l.p.q.batch {
				break
			}
			i = len(batches)
			batches = grow(batches)
			batches[i].partition, batches[i].size = t.partition, 0
		} else if messages > l.p.q.batch || batches[i].size+t.bytes > l.p.q.maxBytes() {
			break
		}
		batches[i].parts = append(batches[i].parts, t)
		batches[i].size += t.bytes
		t.state = underWay
	}
	l.batches = batches
	if n == 0 {
		l.running = false
		return nil
	}
	rest := copy(l.waiting, l.waiting[n:])
	clear(l.waiting[rest:])
	l.waiting = l.waiting[:rest]
	return batches
}

// grow adds a batch that keeps the room for parts of the one that was there.
func grow(batches []batch) []batch {
	if n := len(batches); n < cap(batches) {
		batches = batches[:n+1]
		batches[n].parts = batches[n].parts[:0]
		return batches
	}
	return append(batches, batch{})
}

// encode writes the record batches, one after the other.
func (l *lane) encode(batches []batch) {
	size := 0
	for _, b := range batches {
		size += 4 + atRecords + b.size
	}
	if cap(l.encoded) < size {
		l.encoded = make([]byte, 0, size)
	}
	dst, now := l.encoded[:0], time.Now()
	for i := range batches {
		from := len(dst)
		dst = appendBatch(append(dst, 0, 0, 0, 0), now, batches[i].parts)
		batches[i].sized = dst[from:len(dst):len(dst)]
		binary.BigEndian.PutUint32(batches[i].sized, uint32(len(batches[i].bytes())))
	}
	l.encoded = dst[:0]
}

// send makes one request of the batches and settles their parts.
func (l *lane) send(batches []batch) {
	c, err := l.connect()
	if err != nil {
		err = queue.Reject(err)
		l.settle(batches, func(int) (queue.Outcome, error) { return queue.Rejected, err })
		l.p.ask()
		return
	}
	answers, sent, err := c.produce(batches)
	if err != nil {
		outcome, err := queue.Unknown, fmt.Errorf("kafka: publish to %s: %w", l.addr, err)
		if !sent {
			outcome, err = queue.Rejected, queue.Reject(err)
		}
		l.settle(batches, func(int) (queue.Outcome, error) { return outcome, err })
		l.drop()
		// The client may not be done with what it was given.
		l.encoded = nil
		return
	}
	if l.p.q.acks == 0 {
		l.settle(batches, func(int) (queue.Outcome, error) { return queue.Accepted, nil })
		return
	}
	l.settle(batches, func(i int) (queue.Outcome, error) { return l.judge(answers[i], batches[i].partition) })
}

func (l *lane) settle(batches []batch, judge func(int) (queue.Outcome, error)) {
	l.mu.Lock()
	for i, b := range batches {
		outcome, err := judge(i)
		for _, t := range b.parts {
			t.outcome, t.err, t.state = outcome, err, settled
		}
	}
	l.mu.Unlock()
	for _, b := range batches {
		for _, t := range b.parts {
			t.done.settle()
		}
	}
}

// connect returns a connection that the broker has not closed, as far as can
// be seen: what is sent into a broken one is unknown, and would not have to be.
func (l *lane) connect() (carrier, error) {
	if l.carrier != nil && !l.carrier.alive() {
		l.drop()
	}
	if l.carrier == nil {
		if l.p.ctx.Err() != nil {
			return nil, queue.ErrClosed
		}
		c, err := l.p.q.client.carrier(l.p.ctx, l.addr)
		if err != nil {
			return nil, err
		}
		l.carrier = c
	}
	return l.carrier, nil
}

func (l *lane) drop() {
	_ = l.carrier.Close()
	l.carrier = nil
	l.p.ask()
}

func (l *lane) judge(a answered, partition int) (queue.Outcome, error) {
	err := a.err
	if !a.said {
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
