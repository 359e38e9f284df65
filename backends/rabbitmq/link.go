package rabbitmq

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"queuelab/queue"
)

const (
	connectTimeout = 10 * time.Second // for a whole connection: dial, log-in, topology
	closeTimeout   = 2 * time.Second  // for the broker's part in a close
	backoffMin     = 50 * time.Millisecond
	backoffMax     = 2 * time.Second
)

// link keeps one session S alive: get returns it, and opens another one, after
// a back-off, once it is dead. Attempts run in the background, so that callers
// with little time cannot keep a slow broker from ever answering.
type link[S any] struct {
	open  func(context.Context) (S, error)
	alive func(S) bool
	drop  func(S)

	life context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	current  *S
	opened   time.Time // of current
	failures int       // attempts in a row that led to nothing lasting
	attempt  *attempt[S]
}

type attempt[S any] struct {
	done    chan struct{}
	session S
	err     error
}

func newLink[S any](open func(context.Context) (S, error), alive func(S) bool, drop func(S)) *link[S] {
	l := &link[S]{open: open, alive: alive, drop: drop}
	l.life, l.end = context.WithCancel(context.Background())
	return l
}

// get waits for a live session, until one attempt at it has failed or ctx ends.
func (l *link[S]) get(ctx context.Context) (S, error) {
	var none S
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return none, queue.ErrClosed
	}
	if l.current != nil && l.alive(*l.current) {
		s := *l.current
		l.mu.Unlock()
		return s, nil
	}
	if l.attempt == nil {
		l.attempt = &attempt[S]{done: make(chan struct{})}
		dead := l.current
		l.current = nil
		wait := time.Duration(0)
		if dead != nil && time.Since(l.opened) < backoffMax {
			// It was lost as soon as it was won: that is no success.
			l.failures++
		}
		if dead != nil || l.failures > 0 {
			wait = backoff(l.failures)
		}
		l.wg.Add(1)
		go l.run(l.attempt, dead, wait)
	}
	a := l.attempt
	l.mu.Unlock()

	select {
	case <-a.done:
		return a.session, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	case <-l.life.Done():
		return none, queue.ErrClosed
	}
}

func (l *link[S]) run(a *attempt[S], dead *S, wait time.Duration) {
	defer l.wg.Done()
	if dead != nil {
		l.drop(*dead)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		ctx, cancel := context.WithTimeout(l.life, connectTimeout)
		a.session, a.err = l.open(ctx)
		cancel()
	case <-l.life.Done():
		a.err = queue.ErrClosed
	}

	l.mu.Lock()
	l.attempt = nil
	late := l.closed && a.err == nil
	switch {
	case a.err != nil:
		l.failures++
	case !l.closed:
		if time.Since(l.opened) >= backoffMax {
			l.failures = 0
		}
		l.current, l.opened = &a.session, time.Now()
	}
	l.mu.Unlock()
	if late {
		l.drop(a.session)
		a.err = queue.ErrClosed
	}
	close(a.done)
}

// backoff doubles from backoffMin to backoffMax; half of it is chance, so that
// many clients of one broker do not come back at once.
func backoff(failures int) time.Duration {
	d := backoffMax
	if failures < 6 {
		d = min(backoffMin<<failures, backoffMax)
	}
	return d/2 + rand.N(d/2)
}

// close drops the session and refuses further ones.
func (l *link[S]) close() {
	l.mu.Lock()
	l.closed = true
	last := l.current
	l.current = nil
	l.mu.Unlock()
	l.end()
	if last != nil {
		l.drop(*last)
	}
	l.wg.Wait()
}
