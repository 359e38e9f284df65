package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/driver"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

var _ queue.Replayer = (*streams)(nil)

// replay reads the stream by XREAD, which no group notices.
type replay struct {
	q       *streams
	client  *redis.Client // lifts the session's block
	session *redisconn.Session
	puller  *driver.Puller[*entry]
	shape   consumer // whose methods read what the server answers
	once    sync.Once
	err     error

	last string // what the next read begins after; only for the goroutine that reads
}

// Replay implements queue.Replayer.
func (q *streams) Replay(ctx context.Context, from queue.From) (queue.Consumer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	after, err := q.placeBefore(ctx, from)
	if err != nil {
		return nil, q.Wrap("replay", err)
	}
	r := &replay{q: q, client: q.Client(2), shape: consumer{q: q}, last: after}
	r.session = redisconn.NewSession(q.Server, r.client)
	r.puller = driver.NewPuller(r.read, r.session.Unblock)
	if err := q.Children.Keep(r); err != nil {
		return nil, err
	}
	return r, nil
}

// placeBefore is the id after which a replay begins to read.
func (q *streams) placeBefore(ctx context.Context, from queue.From) (string, error) {
	switch {
	case from.Offset != "" && !from.Time.IsZero():
		return "", errors.New("from a time and from an offset: want one of them")
	case from.Offset != "":
		return before(from.Offset)
	case from.Time.IsZero():
		return "0-0", nil
	}
	// An id begins with the broker's milliseconds, and no id is from a time to come:
	// what is published next may have one that is earlier.
	t, err := q.Control.Time(ctx).Result()
	if err != nil {
		return "", err
	}
	if from.Time.After(t) {
		info, err := q.Control.XInfoStream(ctx, q.stream).Result()
		if redisconn.NoSuchKey(err) {
			return "0-0", nil
		}
		if err != nil {
			return "", err
		}
		return info.LastGeneratedID, nil
	}
	return before(strconv.FormatInt(max(0, ceilMilli(from.Time)), 10))
}

func ceilMilli(t time.Time) int64 { return t.Add(time.Millisecond - time.Nanosecond).UnixMilli() }

// before is the last id that can stand before the given one.
func before(id string) (string, error) {
	ms, seq, has := strings.Cut(id, "-")
	m, err := strconv.ParseUint(ms, 10, 64)
	var s uint64
	if err == nil && has {
		s, err = strconv.ParseUint(seq, 10, 64)
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("offset %q: want an entry's id, as 1700000000000-0 or 1700000000000", id)
	case s > 0:
		s--
	case m > 0:
		m, s = m-1, math.MaxUint64
	}
	return fmt.Sprintf("%d-%d", m, s), nil
}

func (r *replay) read(most int) ([]*entry, error) {
	reply, err := r.session.Do("xread", "count", max(most, r.q.prefetch), "block", redisconn.Block.Milliseconds(), "streams", r.q.stream, r.last)
	if err != nil {
		return nil, fmt.Errorf("redis-streams replay: %w", err)
	}
	es, _, err := r.shape.fresh(&reply)
	if err != nil {
		return nil, fmt.Errorf("redis-streams replay: %w", err)
	}
	messages, foreign := make([]*entry, 0, len(es)), 0
	for _, e := range es {
		r.last = e.id
		if e.message.ID == "" {
			foreign++
			continue
		}
		messages = append(messages, e)
	}
	if foreign > 0 {
		err = fmt.Errorf("redis-streams replay: passed over %d entries of %s that are not messages of this queue", foreign, r.q.stream)
	}
	return messages, err
}

// Receive implements queue.Consumer.
func (r *replay) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	return driver.Receive(ctx, r.puller, max, func(e *entry) (queue.Message, int) { return e.message, 0 })
}

// Ack implements queue.Consumer. Nobody is told.
func (r *replay) Ack(_ context.Context, ds ...*queue.Delivery) error {
	return queue.Settle(ds, func([]*queue.Delivery) error { return nil })
}

// Nack implements queue.Consumer.
func (r *replay) Nack(context.Context, ...*queue.Delivery) error { return queue.ErrUnsupported }

// Close implements queue.Consumer.
func (r *replay) Close() error {
	r.once.Do(func() {
		r.puller.Close()
		r.err = errors.Join(r.session.Close(), r.client.Close())
		r.q.Children.Remove(r)
	})
	return r.err
}
