package queuetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"queuelab/queue"
	"queuelab/queue/queuetest"
)

// shape says what a broker does (caps), what it says of itself (claim), and
// what it gets wrong.
type shape struct {
	caps  queue.Capabilities
	claim func(*queue.Capabilities) // nil: the truth
	lease time.Duration             // 0: a consumer that lives keeps what it holds
	flaw  flaw
}

// broker is a broker of any shape, inside this process, that can crash and
// freeze. The memory backend cannot: it dies with its process.
type broker struct {
	shape

	mu     sync.Mutex
	topics map[string]map[string]*group
	seq    uint64
	epoch  int           // connections of an earlier epoch are dead
	down   bool          // killed, and not yet restarted
	frozen chan struct{} // nil, or closed by the thaw
	change chan struct{} // closed and replaced when something changes
}

// flaw is what a mutant gets wrong.
type flaw int

const (
	none flaw = iota
	spins
	staysDead
	publisherStaysDead
	unordered
	mixesQueues
	subscribesLate
	deletesNothing
	takesAnyParameter
	forgetsAcksInACrash
	losesHeldInACrash
)

type group struct {
	ready []*item
	held  map[*queue.Delivery]*item
	acked []*item
	users int
}

type item struct {
	queue.Message
	seq      uint64
	attempts int
	owner    *fakeConsumer
	until    time.Time
}

func newBroker(s shape) *broker {
	return &broker{shape: s, topics: make(map[string]map[string]*group), change: make(chan struct{})}
}

func (b *broker) harness() queuetest.Harness {
	return queuetest.Harness{
		Open: func(t testing.TB, name string, params ...string) queue.Queue {
			g, err := b.parse(params)
			if err != nil {
				t.Fatal(err)
			}
			if !b.caps.Shared {
				name = fmt.Sprintf("%s-%p", name, new(int))
			}
			q := &fakeQueue{b: b, name: name, group: g}
			if b.flaw == mixesQueues {
				q.name = "all"
			}
			return q
		},
		OpenErr:    func(params ...string) error { _, err := b.parse(params); return err },
		Crash:      func(testing.TB) { b.crash() },
		Freeze:     func(testing.TB) func() { return b.freeze() },
		Redelivery: max(2*b.lease, 50*time.Millisecond),
		Arrival:    time.Second,
	}
}

func (b *broker) parse(params []string) (group string, err error) {
	group = "default"
	for _, p := range params {
		name, value, _ := strings.Cut(p, "=")
		switch {
		case name == "group" && b.caps.Groups:
			group = value
		case name == "preset" && slices.Contains([]string{"latency", "throughput"}, value):
		case name == "preset":
			return "", fmt.Errorf("preset=%q: want one of latency, throughput", value)
		case b.flaw != takesAnyParameter:
			return "", fmt.Errorf("unknown parameter %q: the known ones are group, preset", name)
		}
	}
	return group, nil
}

// changed wakes all who wait. The caller holds b.mu.
func (b *broker) changed() {
	close(b.change)
	b.change = make(chan struct{})
}

func (b *broker) crash() {
	b.mu.Lock()
	b.epoch++
	b.down = true
	for name, gs := range b.topics {
		for _, g := range gs {
			switch {
			case b.flaw == losesHeldInACrash:
				clear(g.held)
			case b.flaw == forgetsAcksInACrash:
				g.ready, g.acked = append(g.ready, g.acked...), nil
				fallthrough
			case b.caps.Guarantee == queue.AtLeastOnce:
				b.giveBack(g, func(*item) bool { return true })
			}
			if !b.caps.Durable {
				g.ready = nil
			}
		}
		if b.caps.Broadcast {
			delete(b.topics, name)
		}
	}
	b.changed()
	b.mu.Unlock()
	time.Sleep(100 * time.Millisecond)
	b.mu.Lock()
	b.down = false
	b.changed()
	b.mu.Unlock()
}

func (b *broker) freeze() func() {
	ch := make(chan struct{})
	b.mu.Lock()
	b.frozen = ch
	b.mu.Unlock()
	return func() {
		b.mu.Lock()
		b.frozen = nil
		b.mu.Unlock()
		close(ch)
	}
}

// thawed waits while the broker is frozen.
func (b *broker) thawed(ctx context.Context) error {
	b.mu.Lock()
	ch := b.frozen
	b.mu.Unlock()
	if ch == nil {
		return nil
	}
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// giveBack makes held messages available again. The caller holds b.mu.
func (b *broker) giveBack(g *group, which func(*item) bool) {
	for d, it := range g.held {
		if which(it) {
			delete(g.held, d)
			it.owner = nil
			g.ready = append(g.ready, it)
		}
	}
	slices.SortFunc(g.ready, func(x, y *item) int { return int(x.seq) - int(y.seq) })
	b.changed()
}

// group finds or makes a group. The caller holds b.mu.
func (b *broker) group(topic, name string) *group {
	gs := b.topics[topic]
	if gs == nil {
		gs = make(map[string]*group)
		b.topics[topic] = gs
	}
	if gs[name] == nil {
		gs[name] = &group{held: make(map[*queue.Delivery]*item)}
	}
	return gs[name]
}

type fakeQueue struct {
	b           *broker
	name, group string

	mu     sync.Mutex
	closed bool
	open   []interface{ Close() error }
}

func (q *fakeQueue) join(c interface{ Close() error }) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return queue.ErrClosed
	}
	q.open = append(q.open, c)
	return nil
}

func (q *fakeQueue) Publisher(context.Context) (queue.Publisher, error) {
	p := &fakePublisher{q: q, done: make(chan struct{}), epoch: q.b.epochNow()}
	if err := q.join(p); err != nil {
		return nil, err
	}
	if q.b.caps.Stored {
		q.b.mu.Lock()
		q.b.group(q.name, q.group) // messages wait here for a consumer
		q.b.mu.Unlock()
	}
	return p, nil
}

func (b *broker) epochNow() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.epoch
}

func (q *fakeQueue) Consumer(context.Context) (queue.Consumer, error) {
	c := &fakeConsumer{q: q, done: make(chan struct{}), group: q.group, epoch: q.b.epochNow()}
	if q.b.caps.Broadcast {
		c.group = fmt.Sprintf("%p", c)
	}
	if err := q.join(c); err != nil {
		return nil, err
	}
	if q.b.flaw == subscribesLate {
		time.AfterFunc(20*time.Millisecond, c.subscribe)
	} else {
		c.subscribe()
	}
	return c, nil
}

func (q *fakeQueue) Capabilities() queue.Capabilities {
	caps := q.b.caps
	if q.b.claim != nil {
		q.b.claim(&caps)
	}
	return caps
}

func (q *fakeQueue) Delete(context.Context) error {
	if q.b.flaw == deletesNothing {
		return nil
	}
	q.b.mu.Lock()
	defer q.b.mu.Unlock()
	for _, g := range q.b.topics[q.name] {
		g.ready = nil
		clear(g.held)
	}
	return nil
}

func (q *fakeQueue) Close() error {
	q.mu.Lock()
	q.closed = true
	open := q.open
	q.open = nil
	q.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
	return nil
}

type fakePublisher struct {
	q     *fakeQueue
	once  sync.Once
	done  chan struct{}
	epoch int
}

func (p *fakePublisher) Publish(ctx context.Context, ms ...queue.Message) error {
	b := p.q.b
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-p.done:
		return queue.ErrClosed
	default:
	}
	if b.caps.Confirm == queue.ConfirmNone {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		if b.isFrozen() { // the socket takes it
			go func() {
				defer cancel()
				b.thawed(ctx)
				b.publish(p.q.name, ms)
			}()
			return nil
		}
		defer cancel()
	} else if err := b.thawed(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	down := b.down || b.flaw == publisherStaysDead && p.epoch != b.epoch
	b.mu.Unlock()
	if down {
		return errors.New("fake broker: connection refused")
	}
	b.publish(p.q.name, ms)
	return nil
}

func (b *broker) isFrozen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.frozen != nil
}

func (b *broker) publish(topic string, ms []queue.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range ms {
		b.seq++
		for _, g := range b.topics[topic] {
			if b.caps.Stored || g.users > 0 {
				g.ready = append(g.ready, &item{Message: m, seq: b.seq})
			}
		}
	}
	b.changed()
}

func (p *fakePublisher) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}
