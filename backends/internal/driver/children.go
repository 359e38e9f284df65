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

// Keep remembers a child until Remove, and has it start. Where that fails, or the
// queue was closed before, the child is closed; after CloseAll the error is
// ErrClosed.
func (c *Children) Keep(child io.Closer, start ...func() error) error {
	err := c.add(child)
	for _, s := range start {
		if err == nil {
			err = s()
		}
	}
	if err != nil {
		return errors.Join(err, child.Close())
	}
	return nil
}

func (c *Children) add(child io.Closer) error {
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
