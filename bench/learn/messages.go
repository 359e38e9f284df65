package learn

import (
	"context"
	"fmt"
	"time"

	"queuelab/queue"
)

// Messages makes n messages, numbered from 1. Their ids hold the lesson's, and
// their body is the same as their id.
func (s *Stand) Messages(n int) []queue.Message {
	ms := make([]queue.Message, n)
	for i := range ms {
		id := fmt.Sprintf("%s-%d", s.ID, i+1)
		ms[i] = queue.Message{ID: id, Body: []byte(id)}
	}
	return ms
}

// Publish publishes n messages, one call each, and wants every one accepted.
func (s *Stand) Publish(q queue.Queue, n int) []queue.Message {
	p := s.Publisher(q)
	ms := s.Messages(n)
	for _, m := range ms {
		s.Must(p.Publish(s.ctx, m))
	}
	s.Must(p.Close())
	return ms
}

// Publisher opens one.
func (s *Stand) Publisher(q queue.Queue) queue.Publisher {
	p, err := q.Publisher(s.ctx)
	s.Must(err)
	s.After(p.Close)
	return p
}

// Consumer opens one. It is closed when the lesson is over.
func (s *Stand) Consumer(q queue.Queue) queue.Consumer {
	c, err := q.Consumer(s.ctx)
	s.Must(err)
	s.After(c.Close)
	return c
}

// Take receives n messages, one after the other, and settles none of them. It
// ends the lesson where they do not come within 10 s.
func (s *Stand) Take(c queue.Consumer, n int) []*queue.Delivery {
	got := s.TakeFor(c, n, 10*time.Second)
	if len(got) < n {
		s.Fail("%d of %d messages came within 10 s", len(got), n)
	}
	return got
}

// TakeFor receives up to n messages for so long at most, and settles none.
func (s *Stand) TakeFor(c queue.Consumer, n int, within time.Duration) []*queue.Delivery {
	ctx, cancel := context.WithTimeout(s.ctx, within)
	defer cancel()
	var got []*queue.Delivery
	for len(got) < n {
		ds, err := c.Receive(ctx, n-len(got))
		if ctx.Err() != nil && s.ctx.Err() == nil {
			return append(got, ds...)
		}
		s.Must(err)
		got = append(got, ds...)
	}
	return got
}

// Drain receives and acks what there is, until nothing has come for so long.
func (s *Stand) Drain(c queue.Consumer, quiet time.Duration) []*queue.Delivery {
	var all []*queue.Delivery
	for {
		ds := s.TakeFor(c, 1, quiet)
		if len(ds) == 0 {
			return all
		}
		s.Must(c.Ack(s.ctx, ds...))
		all = append(all, ds...)
	}
}

// Backlog is how many messages wait and how many are in somebody's hand, as the
// broker tells; -1: it does not.
func (s *Stand) Backlog(q queue.Queue) queue.Backlog {
	look, ok := q.(queue.Backlogger)
	if !ok {
		return queue.Backlog{Ready: -1, InFlight: -1, Dead: -1}
	}
	b, err := look.Backlog(s.ctx)
	s.Must(err)
	return b
}
