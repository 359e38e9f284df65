package peers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends"
	"queuelab/bench/broker"
	"queuelab/queue"
)

// stage is what a pair runs on: a queue for each side, or one with a group for
// each, and in it the messages that they are to find.
type stage struct {
	broker *broker.Broker
	c      comparison
	name   string
	open   []queue.Queue // to be deleted
}

// The sides, by what their queue or group is called.
const (
	toolSide = "tool"
	oursSide = "ours"
)

// url is the queue of a side in pair i, with the parameters of the row.
func (s *stage) url(side string, i int) string { return s.urlWith(s.c.query, side, i) }

func (s *stage) urlWith(query, side string, i int) string {
	name := s.name
	if !s.c.shared {
		name += "-" + side
	}
	switch s.c.scheme {
	case "redis+list", "redis+pubsub": // which know no groups
	default:
		query += fmt.Sprintf("&group=%s%d", side, i)
	}
	return s.broker.QueueURL(s.c.scheme, name, query)
}

// prepare makes the queues of pair i and fills them.
func (m *measuring) prepare(ctx context.Context, b *broker.Broker, c comparison, i int) (_ *stage, err error) {
	m.queues++
	s := &stage{broker: b, c: c, name: fmt.Sprintf("peers%d", m.queues)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, fillWithin)
	defer cancel()
	fill := c.fillQuery
	if fill == "" {
		fill = c.query
	}
	// Every group is there before the first message is.
	for _, side := range []string{toolSide, oursSide} {
		q, err := backends.Open(ctx, s.urlWith(fill, side, i))
		if err != nil {
			return nil, fmt.Errorf("prepare a queue: %w", err)
		}
		s.open = append(s.open, q)
	}
	if !c.backlog {
		return s, nil
	}
	targets := s.open
	if c.shared {
		targets = targets[:1]
	}
	for _, q := range targets {
		p, err := q.Publisher(ctx)
		if err == nil {
			err = orders{Callers: 8, Batch: 500, Count: c.count}.feed(ctx, p, &clock{})
			err = errors.Join(err, p.Close())
		}
		if err != nil {
			return nil, fmt.Errorf("fill a queue with %d messages: %w", c.count, err)
		}
	}
	return s, nil
}

// close deletes what the stage has made. What cannot be deleted goes with the
// broker.
func (s *stage) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, q := range s.open {
		_ = q.Delete(ctx)
	}
	for _, q := range s.open {
		_ = q.Close()
	}
	s.open = nil
}

const feedBatch = 500

// feed publishes to a side for as long as somebody listens, at most progressRoom
// ahead of what the side tells that it has seen. It waits for the first listener.
func (s *stage) feed(ctx context.Context, side string) error {
	q := s.open[slices.Index([]string{toolSide, oursSide}, side)]
	w, err := parseWhere(s.url(side, 0))
	if err != nil {
		return err
	}
	p, err := q.Publisher(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	counted, ok := p.(queue.ReceiverCounter)
	if !ok {
		return errors.New("this queue does not tell who listens")
	}
	c := bareRedis(w.host)
	defer c.Close()
	msgs, shared := make([]queue.Message, feedBatch), body()
	var sent, seen int64
	for heard := false; ; {
		for sent-seen > progressRoom-feedBatch {
			if seen, err = c.Get(ctx, progressKey(w.queue)).Int64(); err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			if sent-seen <= progressRoom-feedBatch {
				break
			}
			if err := pause(ctx, progressEvery/2); err != nil {
				return err
			}
		}
		batch := msgs
		if !heard {
			batch = msgs[:1]
		}
		messages(batch, shared, sent)
		receivers, err := counted.PublishCounted(ctx, batch...)
		if err != nil {
			return err
		}
		for _, n := range receivers {
			if n > 0 {
				heard = true
				sent++
			} else if heard {
				return nil // it has left
			}
		}
		if !heard {
			if err := pause(ctx, progressEvery); err != nil {
				return err
			}
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
