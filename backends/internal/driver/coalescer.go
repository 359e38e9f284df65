package driver

import (
	"context"
	"sync"
	"time"

	"queuelab/queue"
)

// Coalescer gathers what concurrent callers hand over while a round trip is
// under way, and sends it as the next one. A lone caller waits for nobody.
//
// It is our own although some client libraries have one: a caller whose context
// ends must get away although a socket cannot be interrupted, what was not yet
// sent can then be withdrawn for certain, and many messages can become one
// command or statement, which costs a server much less than as many.
type Coalescer[T, R any] struct {
	send  func(items []T, results []R)
	size  func(T) int
	limit int

	mu      sync.Mutex
	wake    *sync.Cond
	waiting []*call[T, R]
	closed  bool
	stopped chan struct{}
}

type call[T, R any] struct {
	items   []T
	results []R
	sent    int // how many are with the server or beyond
	done    chan struct{}
}

// roundTripBytes is what a round trip holds beyond its first item: more would
// keep the server from everybody else, and gains nothing.
const roundTripBytes = 1 << 20

// part is what one round trip holds of a call.
type part[T, R any] struct {
	call     *call[T, R]
	from, to int
	last     bool
}

// NewCoalescer starts one. send fills in one result per item; it gets at most
// limit items, or about a megabyte by size, and is called by one goroutine at a
// time.
func NewCoalescer[T, R any](limit int, size func(T) int, send func(items []T, results []R)) *Coalescer[T, R] {
	c := &Coalescer[T, R]{send: send, size: size, limit: limit, stopped: make(chan struct{})}
	c.wake = sync.NewCond(&c.mu)
	go c.run()
	return c
}

// Do sends the items, in order, and returns one result for each. When ctx ends
// first it returns ctx.Err() and the number of items that may have been sent;
// the others certainly were not. After Close it is ErrClosed.
func (c *Coalescer[T, R]) Do(ctx context.Context, items []T) (results []R, sent int, err error) {
	k := &call[T, R]{items: items, results: make([]R, len(items)), done: make(chan struct{})}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, 0, queue.ErrClosed
	}
	c.waiting = append(c.waiting, k)
	c.mu.Unlock()
	c.wake.Signal()

	select {
	case <-k.done:
		return k.results, len(items), nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, w := range c.waiting {
		if w == k {
			c.waiting = append(c.waiting[:i:i], c.waiting[i+1:]...)
			break
		}
	}
	return nil, k.sent, ctx.Err()
}

func (c *Coalescer[T, R]) run() {
	defer close(c.stopped)
	var items []T
	var results []R
	var parts []part[T, R]
	for {
		c.mu.Lock()
		for len(c.waiting) == 0 && !c.closed {
			c.wake.Wait()
		}
		if len(c.waiting) == 0 {
			c.mu.Unlock()
			return
		}
		// One call may be larger than a round trip, and one round trip larger
		// than a call: the first may have been begun before, the last may
		// remain.
		parts, items = parts[:0], items[:0]
		for bytes := 0; len(c.waiting) > 0 && len(items) < c.limit && bytes < roundTripBytes; {
			k := c.waiting[0]
			from := k.sent
			for k.sent < len(k.items) && len(items) < c.limit && bytes < roundTripBytes {
				bytes += c.size(k.items[k.sent])
				items = append(items, k.items[k.sent])
				k.sent++
			}
			whole := k.sent == len(k.items)
			parts = append(parts, part[T, R]{k, from, k.sent, whole})
			if whole {
				c.waiting[0] = nil
				c.waiting = c.waiting[1:]
			}
		}
		c.mu.Unlock()

		results = append(results[:0], make([]R, len(items))...)
		c.send(items, results)

		left := results
		for _, p := range parts {
			left = left[copy(p.call.results[p.from:p.to], left):]
			if p.last {
				close(p.call.done)
			}
		}
		clear(items)
		clear(parts)
	}
}

// Refuse makes new calls ErrClosed. Those in flight go on.
func (c *Coalescer[T, R]) Refuse() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.wake.Broadcast()
}

// Close refuses new calls, and waits for those in flight, at most for patience.
func (c *Coalescer[T, R]) Close(patience time.Duration) {
	c.Refuse()
	select {
	case <-c.stopped:
	case <-time.After(patience):
	}
}
