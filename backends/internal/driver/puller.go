package driver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"queuelab/queue"
)

// Puller serves a Receive that ends at once, by a read that cannot be
// interrupted. It reads only while a Receive waits. What a read brings after
// its Receive has gone is kept for the next one, and what nobody came for is
// what Close returns.
type Puller[T any] struct {
	read    func(most int) ([]T, error) // blocks for a bounded time; may return none
	unblock func()                      // makes a read under way return soon, if it can

	mu       sync.Mutex
	ready    []T
	err      error // of the last read, not yet returned
	want     int   // what a Receive is waiting for; 0: nobody waits
	reading  bool
	failures int // reads in a row that failed
	closed   bool
	news     chan struct{}
	done     chan struct{}
	readers  sync.WaitGroup
}

// NewPuller makes one; it starts nothing.
func NewPuller[T any](read func(most int) ([]T, error), unblock func()) *Puller[T] {
	return &Puller[T]{read: read, unblock: unblock, news: make(chan struct{}, 1), done: make(chan struct{})}
}

// Receive returns at least one and at most the given number, or an error.
func (p *Puller[T]) Receive(ctx context.Context, most int) ([]T, error) {
	if most < 1 {
		return nil, fmt.Errorf("receive: max is %d, want at least 1", most)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, queue.ErrClosed
		}
		if n := min(len(p.ready), most); n > 0 {
			got := p.ready[:n:n]
			p.ready = p.ready[n:]
			p.mu.Unlock()
			return got, nil
		}
		if err := p.err; err != nil {
			p.err = nil
			p.mu.Unlock()
			return nil, err
		}
		p.want = most
		if !p.reading {
			p.reading = true
			p.readers.Go(p.run)
		}
		p.mu.Unlock()

		select {
		case <-p.news:
		case <-p.done:
			return nil, queue.ErrClosed
		case <-ctx.Done():
			p.mu.Lock()
			p.want = 0
			if p.reading && !p.closed {
				// The less time a read goes on for nobody, the less it takes
				// away from the other consumers.
				p.readers.Go(p.unblock)
			}
			p.mu.Unlock()
			return nil, ctx.Err()
		}
	}
}

// Fail makes a Receive return err, once what is ready was taken.
func (p *Puller[T]) Fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *Puller[T]) run() {
	for {
		p.mu.Lock()
		most := p.want
		if most == 0 || p.closed {
			p.reading = false
			p.mu.Unlock()
			return
		}
		pause := Backoff(p.failures)
		p.mu.Unlock()

		if pause > 0 && !Sleep(p.done, pause) {
			continue
		}
		got, err := p.read(most)
		if len(got) == 0 && err == nil {
			p.mu.Lock()
			p.failures = 0
			p.mu.Unlock()
			continue
		}
		p.mu.Lock()
		p.ready = append(p.ready, got...)
		if p.failures++; err == nil {
			p.failures = 0
		} else {
			p.err = err
		}
		p.want, p.reading = 0, false
		p.mu.Unlock()
		Signal(p.news)
		return
	}
}

// Close ends a Receive and the read under it, and returns what was read and
// never received. A second Close returns nothing.
func (p *Puller[T]) Close() []T {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	close(p.done)
	p.mu.Unlock()

	ended := make(chan struct{})
	go func() { p.readers.Wait(); close(ended) }()
	for {
		// The read may not have begun to block when it is unblocked: again,
		// until it has ended.
		p.unblock()
		select {
		case <-ended:
			rest := p.ready
			p.ready = nil
			return rest
		case <-time.After(10 * time.Millisecond):
		}
	}
}
