package rabbitmq

import (
	"sync"

	"queuelab/queue"
)

// call is one Publish: what became of each message so far. The caller may leave
// before all is known.
type call struct {
	mu       sync.Mutex
	states   []state
	outcomes []queue.Outcome
	open     int
	left     bool
	err      error // the first cause
	done     chan struct{}
}

type state uint8

const (
	waiting state = iota // no byte was written
	taken
	finished
)

func newCall(n int) *call {
	return &call{states: make([]state, n), outcomes: make([]queue.Outcome, n), open: n, done: make(chan struct{})}
}

// take claims message i for writing, unless the caller has left: then nobody
// may write it, for the caller was told that it is rejected.
func (c *call) take(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		return false
	}
	c.states[i] = taken
	return true
}

func (c *call) finish(i int, o queue.Outcome, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left || c.states[i] == finished {
		return
	}
	c.states[i], c.outcomes[i] = finished, o
	if c.err == nil {
		c.err = err
	}
	if c.open--; c.open == 0 {
		close(c.done)
	}
}

// leave decides what is not known yet, and returns the result.
func (c *call) leave(cause error) error {
	c.mu.Lock()
	c.left = true
	for i, s := range c.states {
		switch s {
		case waiting:
			c.outcomes[i] = queue.Rejected
		case taken:
			c.outcomes[i] = queue.Unknown
		}
	}
	if c.err == nil && c.open > 0 {
		c.err = cause
	}
	c.mu.Unlock()
	return c.result()
}

func (c *call) result() error {
	if c.err == nil {
		return nil
	}
	return &queue.PublishError{Outcomes: c.outcomes, Err: c.err}
}
