package redisstreams

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/driver"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

// scriptIDs bounds the ids of one script call, so that no call keeps the server
// from others for long, and its Lua stack holds them.
const scriptIDs = 1000

func noSize(*entry) int { return 0 }

// Ack implements queue.Consumer.
func (c *consumer) Ack(ctx context.Context, ds ...*queue.Delivery) error {
	if c.q.noAck {
		return queue.Settle(ds, func([]*queue.Delivery) error { return nil })
	}
	return queue.Settle(ds, func(fresh []*queue.Delivery) error { return c.share(ctx, opAck, c.acks, fresh) })
}

// Nack implements queue.Consumer.
func (c *consumer) Nack(ctx context.Context, ds ...*queue.Delivery) error {
	if c.q.noAck {
		return fmt.Errorf("redis-streams nack with noack=true: %w", queue.ErrUnsupported)
	}
	return queue.Settle(ds, func(fresh []*queue.Delivery) error { return c.share(ctx, opNack, c.nacks, fresh) })
}

func (c *consumer) share(ctx context.Context, op string, with *driver.Coalescer[*entry, error], ds []*queue.Delivery) error {
	unsure, err := driver.Settle(ctx, with, ds, func(e *entry) bool { return e.consumer == c })
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range unsure {
		e.doubt(op)
	}
	return err
}

// The answers of a script that settles: whose an entry was.
const (
	notPending = 0
	mine       = 1
	others     = 2
)

const (
	opAck  = "ack"
	opNack = "nack"
)

// doubt notes that nobody knows whether op was done.
func (e *entry) doubt(op string) {
	if op == opAck {
		e.askedAck = true
	} else {
		e.askedNak = true
	}
}

// verdict is what an answer means for the caller. An earlier try with an unknown
// outcome may have been the one that did it.
func (e *entry) verdict(op string, owner int64) error {
	switch {
	case owner == mine,
		op == opAck && e.askedAck && owner == notPending,
		op == opNack && e.askedNak:
		return nil
	}
	return queue.ErrLeaseLost
}

func (c *consumer) settle(op string, es []*entry, errs []error) {
	script := ackScript
	if op == opNack {
		script = nackScript
	}
	ctx, cancel := c.q.Within()
	defer cancel()
	args := make([]any, 0, len(es)+2)
	args = append(args, c.q.group, c.name)
	none := "0-0" // no entry has that id
	c.mu.Lock()
	for _, e := range es {
		// An entry that was lost may be this consumer's again, by another
		// delivery, which this settle must not touch.
		id := &e.id // a pointer needs no allocation of its own
		if e.lost {
			id = &none
		}
		args = append(args, id)
		e.nacked = e.nacked || op == opNack
	}
	c.mu.Unlock()
	owners, err := ownersOf(redisconn.Run(ctx, c.client, script, c.q.keys(), args...))
	if err != nil && redisconn.NoGroup(err) {
		// The broker has forgotten the group, and who held what.
		owners, err = make([]int64, len(es)), nil
	}
	if err == nil && len(owners) != len(es) {
		err = fmt.Errorf("%d answers for %d deliveries", len(owners), len(es))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, e := range es {
		if err != nil {
			e.nacked = e.nacked && op != opNack
			e.doubt(op)
			errs[i] = c.q.Wrap(op, err)
			continue // still in hand
		}
		errs[i] = e.verdict(op, owners[i])
		c.drop(e)
	}
}

// ownersOf reads the answer of a script that settles.
func ownersOf(r redisconn.Reply, err error) ([]int64, error) {
	if err != nil {
		return nil, err
	}
	n, err := r.Array()
	owners := make([]int64, max(n, 0))
	for i := range owners {
		if err == nil {
			owners[i], err = r.Int()
		}
	}
	return owners, err
}

// drop takes e out of the hand, and not another delivery of the same entry.
func (c *consumer) drop(e *entry) {
	if c.hand[e.id] == e {
		delete(c.hand, e.id)
	}
}

// Close implements queue.Consumer. All that is unsettled is given back, in one
// step with the deletion of the consumer's name.
func (c *consumer) Close() error {
	c.once.Do(func() {
		c.acks.Refuse()
		c.nacks.Refuse()
		c.life.End()
		rest := c.puller.Close() // in the own pending list, too, but for noack
		c.life.Wait()
		c.acks.Close(c.q.Timeout)
		c.nacks.Close(c.q.Timeout)
		ctx, cancel := c.q.Within()
		defer cancel()
		var unread error
		if c.q.noAck {
			unread = c.unread(ctx, rest)
		}
		err := leaveScript.Run(ctx, c.client, c.q.keys(), c.q.group, c.name).Err()
		if err != nil && redisconn.NoGroup(err) {
			err = nil // there is nothing left to give back
		}
		if err != nil {
			err = fmt.Errorf("redis-streams close: unsettled messages come again after %v only: %w", c.q.claim, err)
		}
		c.err = errors.Join(unread, err, c.session.Close(), c.client.Close())
		c.q.Children.Remove(c)
	})
	return c.err
}

// unread gives back what was read without acks and never received, so far as it
// is still kept.
func (c *consumer) unread(ctx context.Context, es []*entry) error {
	ids := idsOf(es)
	for len(ids) > 0 {
		n := min(len(ids), scriptIDs)
		args := []any{c.q.group, c.name}
		for _, id := range ids[:n] {
			args = append(args, id)
		}
		if err := unreadScript.Run(ctx, c.client, c.q.keys(), args...).Err(); err != nil && !errors.Is(err, redis.Nil) {
			return fmt.Errorf("redis-streams close: %d unreceived messages are lost: %w", len(ids), err)
		}
		ids = ids[n:]
	}
	return nil
}
