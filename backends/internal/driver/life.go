package driver

import (
	"context"
	"sync"

	"queuelab/queue"
)

// Life is that of a publisher or a consumer: what it does, for callers or by
// itself, begins before the end and is waited for after it. Its queue may end it
// while it is still being opened.
type Life struct {
	ctx  context.Context
	stop context.CancelFunc

	mu    sync.Mutex
	ended bool
	doing sync.WaitGroup
}

// NewLife begins one.
func NewLife() *Life {
	l := &Life{}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// Begin is for a call, which calls Done when it is through. After End it is
// ErrClosed, and Done is not to be called.
func (l *Life) Begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return queue.ErrClosed
	}
	l.doing.Add(1)
	return nil
}

// Done ends what Begin began.
func (l *Life) Done() { l.doing.Done() }

// Go does work in the background, with a context that ends with the life. After
// End it is ErrClosed, and nothing is done.
func (l *Life) Go(work func(context.Context)) error {
	if err := l.Begin(); err != nil {
		return err
	}
	go func() {
		defer l.Done()
		work(l.ctx)
	}()
	return nil
}

// End lets nothing begin any more, and reports whether it is the first.
func (l *Life) End() (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, l.ended = !l.ended, true
	l.stop()
	return first
}

// Wait waits for all that has begun. It is called after End.
func (l *Life) Wait() { l.doing.Wait() }
