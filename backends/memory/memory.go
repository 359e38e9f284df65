// Package memory is a bounded queue inside this process: what a seckill demo
// without a broker uses, and the yardstick that every broker is measured
// against.
//
// # Delivery
//
// At least once for as long as the process lives. Consumers compete. Only an
// ack removes a message; a nack, or closing the consumer, gives it back to the
// place in the order that it had. Attempts are counted. Publish copies each
// message (id, key, body and headers), as a socket would, so that a caller may
// hand over strings that point into a reused HTTP buffer. Deliveries are not
// copied again: all deliveries of one message share one body and one map of
// headers, which therefore nobody may change.
//
// # URL
//
//	memory://orders?capacity=1024&full=block
//
// The host is the queue's name. capacity (1 to 16777216, default 1024) bounds
// the messages that are not settled yet, in flight or not. full=block (default)
// makes Publish wait for room until its context ends; full=reject answers
// ErrRejected at once. In both cases what Publish did not accept is certainly
// not in the queue. preset=latency and preset=throughput are accepted, so that
// every queue can be asked for them, and change nothing: there is no knob that
// trades one for the other.
//
// Each Open makes a queue of its own, also for a name that is open already:
// what two parts of a process share is the Queue value, not the name.
//
// # Crash behaviour
//
// Everything is lost with the process, and with the Queue value: nothing else
// can reach the messages that are left after Close.
package memory

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"

	"queuelab/backends/internal/params"
	"queuelab/queue"
)

// Open opens a new, empty queue with the settings of u.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	p := params.New(u)
	p.Preset(map[string]map[string]string{"latency": {}, "throughput": {}})
	capacity := p.Int("capacity", 1024, 1, 1<<24)
	full := p.OneOf("full", "block", "reject")
	if err := p.Err(); err != nil {
		return nil, err
	}
	if err := params.CheckName(u.Host); err != nil {
		return nil, fmt.Errorf("the queue's name %q, the host of the URL: want %w", u.Host, err)
	}
	if u.User != nil || u.Path != "" && u.Path != "/" {
		return nil, errors.New("want memory://NAME, without a user and without a path")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &memory{
		capacity: capacity,
		reject:   full == "reject",
		open:     make(map[closer]struct{}),
		notEmpty: make(chan struct{}, 1),
		notFull:  make(chan struct{}, 1),
	}, nil
}

// entry is one unsettled message.
type entry struct {
	queue.Message
	seq      uint64
	attempts int
}

type closer interface{ Close() error }

type memory struct {
	capacity int
	reject   bool

	mu     sync.Mutex
	closed bool
	open   map[closer]struct{} // publishers and consumers
	seq    uint64
	size   int // unsettled messages: fresh, returned and in flight

	// Delivered in order: first what was given back, by seq, then what was
	// never delivered. Every seq in returned is below every seq in fresh.
	returned []*entry
	fresh    []*entry

	// Batons: whoever takes one and leaves something behind passes it on.
	notEmpty, notFull chan struct{}
}

var (
	_ queue.Queue      = (*memory)(nil)
	_ queue.Backlogger = (*memory)(nil)
)

func pass(baton chan struct{}) {
	select {
	case baton <- struct{}{}:
	default:
	}
}

// Publisher implements queue.Queue.
func (m *memory) Publisher(ctx context.Context) (queue.Publisher, error) {
	p := &publisher{m: m, done: make(chan struct{})}
	if err := m.join(ctx, p); err != nil {
		return nil, err
	}
	return p, nil
}

// Consumer implements queue.Queue.
func (m *memory) Consumer(ctx context.Context) (queue.Consumer, error) {
	c := &consumer{m: m, done: make(chan struct{}), held: make(map[*queue.Delivery]*entry)}
	if err := m.join(ctx, c); err != nil {
		return nil, err
	}
	return c, nil
}

func (m *memory) join(ctx context.Context, c closer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return queue.ErrClosed
	}
	m.open[c] = struct{}{}
	return nil
}

// Capabilities implements queue.Queue.
func (m *memory) Capabilities() queue.Capabilities {
	return queue.Capabilities{
		Guarantee:     queue.AtLeastOnce,
		Confirm:       queue.ConfirmMemory,
		AckConfirmed:  true,
		Attempts:      queue.CountedByBroker,
		Nack:          true,
		OrderedPerKey: true,
		Stored:        true,
		Bounded:       true,
	}
}

// Backlog implements queue.Backlogger. It also answers after Close: then it
// tells how many messages are lost.
func (m *memory) Backlog(ctx context.Context) (queue.Backlog, error) {
	if err := ctx.Err(); err != nil {
		return queue.Backlog{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	ready := len(m.returned) + len(m.fresh)
	return queue.Backlog{Ready: int64(ready), InFlight: int64(m.size - ready)}, nil
}

// Delete implements queue.Queue. Deliveries in flight can no longer be settled.
func (m *memory) Delete(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.returned, m.fresh, m.size = nil, nil, 0
	for c := range m.open {
		if c, ok := c.(*consumer); ok {
			clear(c.held)
		}
	}
	pass(m.notFull)
	return nil
}

// Close implements queue.Queue.
func (m *memory) Close() error {
	m.mu.Lock()
	m.closed = true
	var open []closer
	for c := range m.open {
		open = append(open, c)
	}
	m.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
	return nil
}

// giveBack makes entries available again. The caller holds m.mu.
func (m *memory) giveBack(es []*entry) {
	if len(es) == 0 {
		return
	}
	m.returned = append(m.returned, es...)
	slices.SortFunc(m.returned, func(a, b *entry) int {
		if a.seq < b.seq {
			return -1
		}
		return 1
	})
	pass(m.notEmpty)
}

// next takes the first message, if there is one. The caller holds m.mu.
func (m *memory) next() *entry {
	from := &m.fresh
	if len(m.returned) > 0 {
		from = &m.returned
	}
	if len(*from) == 0 {
		return nil
	}
	e := (*from)[0]
	(*from)[0] = nil // append moves what is left and frees the front only later
	*from = (*from)[1:]
	return e
}
