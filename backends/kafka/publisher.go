package kafka

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"queuelab/queue"
)

// publisher cuts what it is given into parts, one or more per partition, and
// hands them to the lane of the broker that leads the partition.
//
// kafka-go's Writer is not used: a batch of its waits for a timer unless it
// fills up, and it does not say which failed message may have been stored.
type publisher struct {
	q      *topicQueue
	ctx    context.Context // ends when Close has waited long enough
	cancel context.CancelFunc
	turn   atomic.Uint32 // deals out messages without a key

	layout atomic.Pointer[layout] // nil: ask again
	asking chan struct{}          // held by the one that asks

	calls   sync.WaitGroup
	flushes sync.WaitGroup
	mu      sync.Mutex
	closed  bool
	lanes   map[string]*lane // by address of the broker
}

// part is a run of messages for one partition that shares one fate.
type part struct {
	lane      *lane // nil: it has no broker to go to
	done      *fanIn
	partition int
	call      []queue.Message
	places    []int32 // of its messages in the call
	bytes     int     // not less than they take in a record batch

	// Guarded by the lane's mutex.
	state   partState
	outcome queue.Outcome
	err     error
}

type partState int

const (
	waiting  partState = iota
	underWay           // may have reached the broker
	settled
)

// fanIn closes done when the last part of a call is settled.
type fanIn struct {
	left atomic.Int32
	done chan struct{}
}

func (f *fanIn) settle() {
	if f.left.Add(-1) == 0 {
		close(f.done)
	}
}

func newPublisher(q *topicQueue) *publisher {
	p := &publisher{q: q, asking: make(chan struct{}, 1), lanes: map[string]*lane{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Publish implements queue.Publisher.
func (p *publisher) Publish(ctx context.Context, msgs ...queue.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !p.begin() {
		return queue.ErrClosed
	}
	defer p.calls.Done()
	if len(msgs) == 0 {
		return nil
	}
	lay, err := p.locate(ctx)
	if err != nil {
		return queue.Reject(fmt.Errorf("kafka: publish: %w", err))
	}
	parts := p.cut(msgs, len(lay.leaders))
	all := &fanIn{done: make(chan struct{})}
	all.left.Store(int32(len(parts)))
	for i := range parts {
		t := &parts[i]
		t.done = all
		addr, err := lay.leader(p.q.topic, t.partition)
		if err != nil {
			p.ask()
		} else if p.q.acks == 0 && t.bytes > p.q.maxBytes() {
			err = fmt.Errorf("kafka: publish: message of %d bytes: %w", t.bytes, kafkago.MessageSizeTooLarge)
		}
		if err != nil {
			t.outcome, t.err, t.state = queue.Rejected, queue.Reject(err), settled
			all.settle()
			continue
		}
		p.lane(addr).enqueue(t)
	}
	select {
	case <-all.done:
	case <-ctx.Done():
	}
	return p.collect(ctx, parts, len(msgs))
}

func (p *publisher) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.calls.Add(1)
	}
	return !p.closed
}

// cut groups the messages by partition, each part small enough for one record
// batch. A message that is too large on its own is still sent, since whether
// the broker takes it is the broker's to say; but not where it would not say.
func (p *publisher) cut(msgs []queue.Message, partitions int) []part {
	if len(msgs) == 1 {
		return []part{{partition: p.partition(&msgs[0], partitions), call: msgs, places: []int32{0}, bytes: recordSize(&msgs[0])}}
	}
	// All places, sorted by partition: ends counts, then tells where each ends.
	where, places := make([]int32, len(msgs)), make([]int32, len(msgs))
	ends := make([]int32, partitions+1)
	for i := range msgs {
		n := p.partition(&msgs[i], partitions)
		where[i] = int32(n)
		ends[n+1]++
	}
	for n := range partitions {
		ends[n+1] += ends[n]
	}
	for i, n := range where {
		places[ends[n]] = int32(i)
		ends[n]++
	}
	parts := make([]part, 0, min(partitions, len(msgs)))
	from := 0
	for n := range partitions {
		bytes := 0
		for i := from; i < int(ends[n]); i++ {
			size := recordSize(&msgs[places[i]])
			if i > from && (i-from >= p.q.batch || bytes+size > p.q.maxBytes()) {
				parts = append(parts, part{partition: n, call: msgs, places: places[from:i], bytes: bytes})
				from, bytes = i, 0
			}
			bytes += size
		}
		if from < int(ends[n]) {
			parts = append(parts, part{partition: n, call: msgs, places: places[from:ends[n]], bytes: bytes})
			from = int(ends[n])
		}
	}
	return parts
}

func (p *publisher) partition(m *queue.Message, partitions int) int {
	if m.Key == "" {
		return int(p.turn.Add(1) % uint32(partitions))
	}
	return keyPartition(m.Key, partitions)
}

// keyPartition is FNV-1a, as kafka-go's Hash and Sarama have it, so that other
// producers can put a key into the same partition.
func keyPartition(key string, partitions int) int {
	h := uint32(2166136261)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	n := int32(h) % int32(partitions)
	return int(max(n, -n))
}

// maxBytes is what fits into a record batch beside its own header.
func (q *topicQueue) maxBytes() int { return max(1, q.facts.maxBatch-100) }

// collect reads the outcomes. What a call that gave up left waiting is taken
// back; what is under way by then is unknown.
func (p *publisher) collect(ctx context.Context, parts []part, n int) error {
	var first error
	var outcomes []queue.Outcome
	for i := range parts {
		t := &parts[i]
		outcome, err := t.result(ctx)
		if err == nil {
			continue
		}
		if first == nil {
			first = err
			outcomes = make([]queue.Outcome, n)
		}
		for _, i := range t.places {
			outcomes[i] = outcome
		}
	}
	if first == nil {
		return nil
	}
	return &queue.PublishError{Outcomes: outcomes, Err: first}
}

// locate returns where the partitions are, and asks the brokers if a request
// went astray since it was last known.
func (p *publisher) locate(ctx context.Context) (*layout, error) {
	if lay := p.layout.Load(); lay != nil {
		return lay, nil
	}
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if lay := p.layout.Load(); lay != nil {
		return lay, nil
	}
	lay, err := p.q.cluster.locate(ctx)
	if err != nil {
		return nil, err
	}
	p.layout.Store(&lay)
	return &lay, nil
}

// ask makes the next Publish ask the brokers where the partitions are.
func (p *publisher) ask() { p.layout.Store(nil) }

func (p *publisher) lane(addr string) *lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[addr]
	if l == nil {
		l = &lane{p: p, addr: addr}
		p.lanes[addr] = l
	}
	return l
}

// Close implements queue.Publisher. It waits for calls in flight as long as
// one request may take, then cuts them off; they come back as unknown.
func (p *publisher) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	idle := make(chan struct{})
	go func() { p.calls.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-p.ctx.Done(): // another Close
	case <-time.After(p.q.timeout):
	}
	p.cancel()
	<-idle
	p.flushes.Wait()
	p.q.forget(p)
	return nil
}
