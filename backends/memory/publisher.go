package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"queuelab/queue"
)

type publisher struct {
	m    *memory
	once sync.Once
	done chan struct{}
}

// Publish implements queue.Publisher. What it does not accept is certainly
// rejected: when the queue is full, when ctx ends and when the publisher is
// closed while Publish waits for room.
func (p *publisher) Publish(ctx context.Context, msgs ...queue.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, msg := range msgs {
		if msg.ID == "" {
			return queue.Reject(fmt.Errorf("memory: publish: message %d of %d has no ID", i+1, len(msgs)))
		}
	}
	es := make([]*entry, len(msgs))
	for i, msg := range msgs {
		es[i] = &entry{Message: clone(msg)}
	}
	for left := es; ; {
		n, err := p.m.put(p, left)
		left = left[n:]
		if err != nil {
			return outcomes(len(msgs), len(left), err)
		}
		if len(left) == 0 {
			return nil
		}
		select {
		case <-p.m.notFull:
		case <-p.done:
		case <-ctx.Done():
			return outcomes(len(msgs), len(left), ctx.Err())
		}
	}
}

var errFull = errors.New("memory: the queue is full")

// put appends as many as there is room for.
func (m *memory) put(p *publisher, es []*entry) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-p.done:
		pass(m.notFull)
		return 0, queue.ErrClosed
	default:
	}
	n := min(len(es), m.capacity-m.size)
	for _, e := range es[:n] {
		m.seq++
		e.seq = m.seq
	}
	m.fresh = append(m.fresh, es[:n]...)
	m.size += n
	if n > 0 {
		pass(m.notEmpty)
	}
	if m.size < m.capacity {
		pass(m.notFull)
	}
	if n < len(es) && m.reject {
		return n, queue.Reject(errFull)
	}
	return n, nil
}

// outcomes says that all but the last left of n messages were accepted.
func outcomes(n, left int, err error) error {
	if left == n && errors.Is(err, queue.ErrClosed) {
		return err
	}
	os := make([]queue.Outcome, n)
	for i := n - left; i < n; i++ {
		os[i] = queue.Rejected
	}
	return &queue.PublishError{Outcomes: os, Err: err}
}

func clone(m queue.Message) queue.Message {
	c := queue.Message{ID: strings.Clone(m.ID), Key: strings.Clone(m.Key), Body: bytes.Clone(m.Body)}
	if m.Headers != nil {
		c.Headers = make(map[string]string, len(m.Headers))
		for k, v := range m.Headers {
			c.Headers[strings.Clone(k)] = strings.Clone(v)
		}
	}
	return c
}

// Close implements queue.Publisher. A Publish that waits for room ends with
// ErrClosed.
func (p *publisher) Close() error {
	p.once.Do(func() {
		close(p.done)
		p.m.mu.Lock()
		defer p.m.mu.Unlock()
		delete(p.m.open, p)
	})
	return nil
}
