package redissharded

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"queuelab/backends/internal/envelope"
	"queuelab/backends/internal/redisconn"
)

// read is one step of reading: what is pending in a partition that this consumer
// was given, or whose reply was lost, and then what is new in all of them.
func (c *consumer) read(int) ([]*entry, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	es, err := c.next()
	if err == nil {
		return es, nil
	}
	// Entries may have been delivered by a reply that never came.
	c.readAgain()
	if redisconn.NoGroup(err) {
		ctx, cancel := c.q.Within()
		defer cancel()
		if err = c.q.ensureGroups(ctx, c.client); err == nil {
			err = ErrRecreated
		}
	}
	return es, fmt.Errorf("redis-sharded receive: %w", err)
}

// readAgain has what is pending read from the beginning.
func (c *consumer) readAgain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.parts {
		p.again = "0"
	}
}

func (c *consumer) next() ([]*entry, error) {
	var old, fresh []*partition
	c.mu.Lock()
	for _, n := range slices.Sorted(maps.Keys(c.parts)) {
		switch p := c.parts[n]; {
		case p.leaving:
		case p.again != "":
			old = append(old, p)
		default:
			fresh = append(fresh, p)
		}
	}
	c.mu.Unlock()
	for _, p := range old {
		if es, err := c.pending(p); len(es) > 0 || err != nil {
			return es, err
		}
	}
	if len(old) > 0 {
		return nil, nil // what was pending is read, and all may be read together
	}
	block := min(redisconn.Block, c.q.claim/3)
	if len(fresh) == 0 {
		timer := time.NewTimer(block)
		defer timer.Stop()
		select {
		case <-c.dealt:
		case <-timer.C:
		}
		return nil, nil
	}
	args := []any{"xreadgroup", "group", c.q.group, owner, "count", c.q.count, "block", block.Milliseconds(), "streams"}
	for _, p := range fresh {
		args = append(args, c.q.streams[p.number])
	}
	for range fresh {
		args = append(args, ">")
	}
	reply, err := c.session.Do(args...)
	if err != nil {
		return nil, err
	}
	return c.admit(&reply, fresh, nil)
}

// pending reads a piece of what is pending in a partition and not in hand.
func (c *consumer) pending(p *partition) ([]*entry, error) {
	// An entry that is still pending to the broker may be acked before its reply is
	// here: what was in hand before must not be delivered because of it.
	c.mu.Lock()
	from, held := p.again, maps.Clone(p.hand)
	c.mu.Unlock()
	reply, err := c.session.Do("xreadgroup", "group", c.q.group, owner, "count", c.q.count, "streams", c.q.streams[p.number], from)
	if err != nil {
		return nil, err
	}
	return c.admit(&reply, []*partition{p}, held)
}

// admit takes entries into the hand, without those that are held already, and
// acks away those that are no message any more, or never were. Those of a
// partition that is read again move its place on.
func (c *consumer) admit(reply *redisconn.Reply, parts []*partition, held map[string]*entry) ([]*entry, error) {
	var es []*entry
	var bodies []byte
	useless := map[*partition][]string{}
	var foreign error
	err := reply.Streams(func(stream string, read []redisconn.Entry) {
		i := slices.IndexFunc(parts, func(p *partition) bool { return c.q.streams[p.number] == stream })
		if i < 0 {
			return
		}
		p := parts[i]
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case held == nil:
		case len(read) < c.q.count:
			p.again = ""
		default:
			p.again = read[len(read)-1].ID
		}
		for _, r := range read {
			if held[r.ID] != nil || p.hand[r.ID] != nil {
				continue
			}
			m, err := envelope.Decode(r.Value, &bodies)
			if err != nil {
				useless[p] = append(useless[p], r.ID)
				foreign = cmp.Or(foreign, fmt.Errorf("acked away entry %s of %s, which was deleted or is not a message of this queue: %w", r.ID, stream, err))
				continue
			}
			e := &entry{id: r.ID, message: m, part: p}
			p.hand[r.ID] = e
			es = append(es, e)
		}
	})
	if err != nil {
		return es, err
	}
	for p, ids := range useless {
		ctx, cancel := c.q.Within()
		defer cancel()
		if err := c.client.XAck(ctx, c.q.streams[p.number], c.q.group, ids...).Err(); err != nil {
			return es, err
		}
	}
	return es, foreign
}
