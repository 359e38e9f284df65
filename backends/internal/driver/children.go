package driver

import (
	"errors"
	"io"
	"sync"

	"queuelab/queue"
)

// Children are the publishers and consumers that a queue has open.
type Children struct {
	mu     sync.Mutex
	open   map[io.Closer]struct{}
	closed bool
}

// Add remembers a child until Remove. After CloseAll it is ErrClosed.
func (c *Children) Add(child io.Closer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return queue.ErrClosed
	}
	if c.open == nil {
		c.open = map[io.Closer]struct{}{}
	}
	c.open[child] = struct{}{}
	return nil
}

// Keep is Add that closes what comes too late.
func (c *Children) Keep(child io.Closer) error {
	err := c.Add(child)
	if err != nil {
		_ = child.Close() // it has done nothing yet, and err says why it is closed
	}
	return err
}

// Remove forgets one that was closed.
func (c *Children) Remove(child io.Closer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, child)
}

// CloseAll closes every one, at the same time. Only the first call does, and
// reports that it did.
func (c *Children) CloseAll() (first bool, err error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return false, nil
	}
	c.closed = true
	all := make([]io.Closer, 0, len(c.open))
	for child := range c.open {
		all = append(all, child)
	}
	c.mu.Unlock()

	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, child := range all {
		wg.Go(func() { errs[i] = child.Close() })
	}
	wg.Wait()
	return true, errors.Join(errs...)
}
