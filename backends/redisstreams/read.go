package redisstreams

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/redisconn"
)

// read is one step of reading: own entries whose reply was lost, then what the
// dead have left, then what was given back, then what is new.
func (c *consumer) read(most int) (es []*entry, err error) {
	es, err = c.next(max(most, c.q.prefetch))
	var gone *GoneError
	switch {
	case err == nil, errors.As(err, &gone):
	case redisconn.NoGroup(err):
		c.rereadAt, c.moreFreed = "-", true
		ctx, cancel := c.q.Within()
		defer cancel()
		if err = c.q.ensureGroup(ctx, c.client); err == nil {
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

func (c *consumer) next(most int) ([]*entry, error) {
	if c.rereadAt != "" {
		if es, err := c.reread(most); len(es) > 0 || err != nil {
			return es, err
		}
	}
	if !time.Now().Before(c.nextClaim) {
		if es, err := c.takeOver(most); len(es) > 0 || err != nil {
			return es, err
		}
	}
	if c.moreFreed {
		if es, err := c.take(most, nil); len(es) > 0 || err != nil {
			return es, err
		}
	}
	// Less than a millisecond would become 0, which is for ever.
	block := max(min(redisconn.Block, time.Until(c.nextClaim)), time.Millisecond)
	args := []any{"xreadgroup", "group", c.q.group, c.name, "count", most, "block", block.Milliseconds()}
	if c.q.noAck {
		args = append(args, "noack")
	}
	reply, err := c.session.Do(append(args, "streams", c.q.stream, c.q.hints(c.q.group), ">", ">")...)
	if err != nil {
		return nil, err
	}
	es, hints, err := c.fresh(&reply)
	if err != nil {
		return nil, err
	}
	es, err = c.admit(es, func(id string) bool { return c.hand[id] != nil }, 0)
	if err == nil && len(hints) > 0 {
		var freed []*entry
		freed, err = c.take(most, hints)
		es = append(freed, es...)
	}
	return es, err
}

// reread reads the own pending entries that this consumer does not hold.
func (c *consumer) reread(most int) ([]*entry, error) {
	held := c.held()
	r, err := c.run(ownScript, c.rereadAt, most)
	if err != nil {
		return nil, err
	}
	open := false
	es, err := c.claimed(r.entries, func(id string) bool {
		e := held[id]
		// Whether it was given back and taken again is known when its nack is
		// answered.
		open = open || e != nil && e.nacked
		return e != nil
	}, r.gone)
	switch {
	case open:
		c.rereadAt = "-"
	case len(r.entries) < most:
		c.rereadAt = ""
	default:
		c.rereadAt = "(" + r.cursor
	}
	return es, err
}

// takeOver claims what has been idle for longer than a lease. Every second lease
// it begins anew; until the cursor is through it goes on with every read.
func (c *consumer) takeOver(most int) ([]*entry, error) {
	held := c.held()
	r, err := c.run(claimScript, c.q.claim.Milliseconds(), c.cursor, most)
	if err != nil {
		return nil, err
	}
	if c.cursor = r.cursor; c.cursor == "0-0" {
		c.nextClaim = time.Now().Add(c.q.claim / 2)
	}
	return c.claimed(r.entries, func(id string) bool { return held[id] != nil && !held[id].nacked }, r.gone)
}

// take takes what was given back.
func (c *consumer) take(most int, hints []any) ([]*entry, error) {
	r, err := c.run(takeScript, append([]any{most}, hints...)...)
	if err != nil {
		c.moreFreed = true // the hints are read
		return nil, err
	}
	c.moreFreed = len(r.entries)+r.gone >= most
	// One that is in hand still was given back by this consumer, which does not
	// know it yet.
	return c.claimed(r.entries, func(string) bool { return false }, r.gone)
}

// claimed admits entries that are pending under this consumer's name. Without
// acks the broker forgets them first; those that it may not have forgotten are
// read again.
func (c *consumer) claimed(es []*entry, holds func(id string) bool, gone int) ([]*entry, error) {
	kept, err := c.admit(es, holds, gone)
	if !c.q.noAck || len(kept) == 0 {
		return kept, err
	}
	ctx, cancel := c.q.Within()
	defer cancel()
	if ackErr := c.client.XAck(ctx, c.q.stream, c.q.group, idsOf(kept)...).Err(); ackErr != nil {
		return nil, ackErr
	}
	return kept, err
}

func idsOf(es []*entry) []string {
	ids := make([]string, len(es))
	for i, e := range es {
		ids[i] = e.id
	}
	return ids
}

// held is what this consumer holds now. An entry that a script still finds
// pending may be acked before its reply is here: what was held before the script
// was sent must not be delivered because of it.
func (c *consumer) held() map[string]*entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.hand)
}

// admit takes the entries into the hand, without those that it holds already,
// and acks away those that are no message any more, or never were. holds is called
// with mu locked.
func (c *consumer) admit(es []*entry, holds func(id string) bool, gone int) ([]*entry, error) {
	kept := es[:0]
	var useless []string
	foreign := 0
	c.mu.Lock()
	for _, e := range es {
		switch {
		case holds(e.id):
		case !e.body:
			useless = append(useless, e.id)
			gone++
		case e.message.ID == "":
			useless = append(useless, e.id)
			foreign++
		default:
			if !c.q.noAck { // otherwise nobody holds it for us
				if old := c.hand[e.id]; old != nil {
					old.lost = true
				}
				c.hand[e.id] = e
			}
			kept = append(kept, e)
		}
	}
	c.mu.Unlock()
	var err error
	if len(useless) > 0 {
		ctx, cancel := c.q.Within()
		defer cancel()
		err = c.client.XAck(ctx, c.q.stream, c.q.group, useless...).Err()
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
func (c *consumer) run(s *redis.Script, args ...any) (got reply, err error) {
	ctx, cancel := c.q.Within()
	defer cancel()
	r, err := redisconn.Run(ctx, c.client, s, c.q.keys(), append([]any{c.q.group, c.name}, args...)...)
	if err == nil {
		_, err = r.Array()
	}
	if err == nil {
		got.cursor, err = r.Text()
	}
	if err == nil {
		got.entries, err = c.entries(&r, true)
	}
	var gone int64
	if err == nil {
		gone, err = r.Int()
	}
	got.gone = int(gone)
	return got, err
}

// fresh reads the answer to XREADGROUP: for each stream its entries, of which
// those of the hints are ids only; nothing when nothing came in time.
func (c *consumer) fresh(r *redisconn.Reply) (es []*entry, hints []any, err error) {
	streams, err := r.Array()
	for i := 0; i < streams && err == nil; i++ {
		var name string
		if _, err = r.Array(); err == nil {
			name, err = r.Text()
		}
		var read []*entry
		if err == nil {
			read, err = c.entries(r, false)
		}
		if name == c.q.stream {
			es = read
			continue
		}
		for _, e := range read {
			hints = append(hints, e.id)
		}
	}
	return es, hints, err
}

// entries reads an array of them, in a few allocations for all; with their
// counts, or they are new.
func (c *consumer) entries(r *redisconn.Reply, counted bool) ([]*entry, error) {
	n, err := r.Array()
	if n <= 0 || err != nil {
		return nil, err
	}
	all, es, bodies := make([]entry, n), make([]*entry, n), make([]byte, 0, r.Len())
	for i := range all {
		if err := c.entry(r, &all[i], counted, &bodies); err != nil {
			return nil, err
		}
		es[i] = &all[i]
	}
	return es, nil
}

// entry reads one: its id, its count, and its fields, which can be none.
func (c *consumer) entry(r *redisconn.Reply, e *entry, counted bool, bodies *[]byte) error {
	e.consumer, e.attempt = c, 1
	values, err := r.Array()
	if err == nil {
		e.id, err = r.Text()
	}
	if counted && err == nil {
		var n int64
		n, err = r.Int()
		e.attempt = int(n)
		values--
	}
	if values < 2 || err != nil {
		return err
	}
	n, err := r.Array()
	e.body = n >= 0
	for i := 0; i < n && err == nil; i += 2 {
		var name, value string
		if name, err = r.Text(); err == nil {
			value, err = r.Text()
			e.set(name, value, bodies)
		}
	}
	return err
}

// set takes one field of the entry. Unknown ones are somebody else's. The body is
// appended to bodies, so that many need one allocation.
func (e *entry) set(name, value string, bodies *[]byte) {
	switch name {
	case fieldID:
		e.message.ID = value
	case fieldKey:
		e.message.Key = value
	case fieldBody:
		from := len(*bodies)
		*bodies = append(*bodies, value...)
		e.message.Body = (*bodies)[from:len(*bodies):len(*bodies)]
	default:
		if h, ok := strings.CutPrefix(name, fieldHeader); ok {
			if e.message.Headers == nil {
				e.message.Headers = make(map[string]string)
			}
			e.message.Headers[h] = value
		}
	}
}
