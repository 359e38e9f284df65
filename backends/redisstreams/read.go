package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/redisconn"
)

// read is one step of reading: own entries whose reply was lost, then what the
// dead have left, then what was given back, then what is new.
func (c *consumer) read(most int) (es []*entry, err error) {
	ctx, cancel := c.q.WithinBlock()
	defer cancel()
	most = max(most, c.q.prefetch)
	err = c.session.Do(ctx, func(ctx context.Context, conn *redis.Conn) error {
		es, err = c.next(ctx, conn, most)
		return err
	})
	var gone *GoneError
	switch {
	case err == nil, errors.As(err, &gone):
	case errors.Is(err, redis.Nil):
		return nil, nil // nothing came in time
	case isGone(err):
		c.rereadAt, c.moreFreed = "-", true
		if e := c.q.ensureGroup(ctx, c.client); e != nil {
			err = e
		} else {
			err = ErrRecreated
		}
	default:
		// Entries and hints may have been assigned by a reply that never came.
		c.rereadAt, c.moreFreed = "-", true
	}
	if err != nil {
		err = fmt.Errorf("redis-streams receive: %w", err)
	}
	return es, err
}

// isGone recognises both texts: a reader that is blocked when the key goes gets
// another error than one that comes after.
func isGone(err error) bool {
	s := err.Error()
	return strings.HasPrefix(s, "NOGROUP") || strings.HasPrefix(s, "UNBLOCKED") || strings.Contains(s, " NOGROUP ")
}

func (c *consumer) next(ctx context.Context, conn *redis.Conn, most int) ([]*entry, error) {
	if c.rereadAt != "" {
		if es, err := c.reread(ctx, conn, most); len(es) > 0 || err != nil {
			return es, err
		}
	}
	if !time.Now().Before(c.nextClaim) {
		if es, err := c.takeOver(ctx, conn, most); len(es) > 0 || err != nil {
			return es, err
		}
	}
	if c.moreFreed {
		if es, err := c.take(ctx, conn, most, nil); len(es) > 0 || err != nil {
			return es, err
		}
	}
	// Less than a millisecond would become 0, which is for ever.
	block := max(min(redisconn.Block, time.Until(c.nextClaim)), time.Millisecond)
	streams, err := conn.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: c.q.group, Consumer: c.name, Count: int64(most), Block: block,
		Streams: []string{c.q.stream, c.q.hints(c.q.group), ">", ">"},
	}).Result()
	if err != nil {
		return nil, err
	}
	var es []*entry
	var hints []any
	for _, s := range streams {
		for _, m := range s.Messages {
			if s.Stream != c.q.stream {
				hints = append(hints, m.ID)
				continue
			}
			e := &entry{id: m.ID, attempt: 1, consumer: c, body: m.Values != nil}
			for name, value := range m.Values {
				e.set(name, value)
			}
			es = append(es, e)
		}
	}
	es, err = c.admit(ctx, conn, es, nil, 0)
	if err == nil && len(hints) > 0 {
		var freed []*entry
		freed, err = c.take(ctx, conn, most, hints)
		es = append(freed, es...)
	}
	return es, err
}

// reread reads the own pending entries that this consumer does not hold.
func (c *consumer) reread(ctx context.Context, conn *redis.Conn, most int) ([]*entry, error) {
	held := c.held()
	r, err := c.run(ctx, conn, ownScript, c.rereadAt, most)
	if err != nil {
		return nil, err
	}
	if len(r.entries) < most {
		c.rereadAt = ""
	} else {
		c.rereadAt = "(" + r.cursor
	}
	return c.admit(ctx, conn, r.entries, held, r.gone)
}

// takeOver claims what has been idle for longer than a lease. Every second lease
// it begins anew; until the cursor is through it goes on with every read.
func (c *consumer) takeOver(ctx context.Context, conn *redis.Conn, most int) ([]*entry, error) {
	held := c.held()
	r, err := c.run(ctx, conn, claimScript, c.q.claim.Milliseconds(), c.cursor, most)
	if err != nil {
		return nil, err
	}
	if c.cursor = r.cursor; c.cursor == "0-0" {
		c.nextClaim = time.Now().Add(c.q.claim / 2)
	}
	return c.admit(ctx, conn, r.entries, held, r.gone)
}

// take takes what was given back.
func (c *consumer) take(ctx context.Context, conn *redis.Conn, most int, hints []any) ([]*entry, error) {
	r, err := c.run(ctx, conn, takeScript, append([]any{most}, hints...)...)
	if err != nil {
		c.moreFreed = true // the hints are read
		return nil, err
	}
	c.moreFreed = len(r.entries)+r.gone >= most
	return c.admit(ctx, conn, r.entries, nil, r.gone)
}

// held is what this consumer holds now. An entry that a script still finds
// pending may be acked before its reply is here: what was held before the script
// was sent must not be delivered because of it.
func (c *consumer) held() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := make(map[string]bool, len(c.hand))
	for id := range c.hand {
		held[id] = true
	}
	return held
}

// admit takes the entries into the hand, without those that are held already,
// and acks away those that are no message any more, or never were.
func (c *consumer) admit(ctx context.Context, conn *redis.Conn, es []*entry, held map[string]bool, gone int) ([]*entry, error) {
	kept := es[:0]
	var useless []string
	foreign := 0
	c.mu.Lock()
	for _, e := range es {
		switch {
		case held[e.id] || c.hand[e.id] != nil:
		case !e.body:
			useless = append(useless, e.id)
			gone++
		case e.message.ID == "":
			useless = append(useless, e.id)
			foreign++
		default:
			c.hand[e.id] = e
			kept = append(kept, e)
		}
	}
	c.mu.Unlock()
	var err error
	if len(useless) > 0 {
		err = conn.XAck(ctx, c.q.stream, c.q.group, useless...).Err()
	}
	if err == nil && gone > 0 {
		err = &GoneError{Entries: gone}
	}
	if err == nil && foreign > 0 {
		err = fmt.Errorf("acked away %d entries of %s that are not messages of this queue", foreign, c.q.stream)
	}
	return kept, err
}

type reply struct {
	cursor  string
	entries []*entry
	gone    int
}

// run runs one of the scripts that return entries.
func (c *consumer) run(ctx context.Context, conn *redis.Conn, s *redis.Script, args ...any) (reply, error) {
	raw, err := s.Run(ctx, conn, c.q.keys(), append([]any{c.q.group, c.name}, args...)...).Slice()
	if err != nil {
		return reply{}, err
	}
	var r reply
	if len(raw) != 3 {
		return r, fmt.Errorf("a script answered with %d values, want 3", len(raw))
	}
	r.cursor, _ = raw[0].(string)
	gone, _ := raw[2].(int64)
	r.gone = int(gone)
	list, _ := raw[1].([]any)
	for _, v := range list {
		item, _ := v.([]any)
		if len(item) < 2 {
			continue
		}
		e := &entry{consumer: c}
		e.id, _ = item[0].(string)
		n, _ := item[1].(int64)
		e.attempt = int(n)
		if len(item) > 2 {
			fields, ok := item[2].([]any)
			e.body = ok
			for i := 0; i+1 < len(fields); i += 2 {
				name, _ := fields[i].(string)
				e.set(name, fields[i+1])
			}
		}
		r.entries = append(r.entries, e)
	}
	return r, nil
}

// set takes one field of the entry. Unknown ones are somebody else's.
func (e *entry) set(name string, v any) {
	value, _ := v.(string)
	switch name {
	case fieldID:
		e.message.ID = value
	case fieldKey:
		e.message.Key = value
	case fieldBody:
		e.message.Body = []byte(value)
	default:
		if h, ok := strings.CutPrefix(name, fieldHeader); ok {
			if e.message.Headers == nil {
				e.message.Headers = make(map[string]string)
			}
			e.message.Headers[h] = value
		}
	}
}
