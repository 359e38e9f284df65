package redisdoing

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"queuelab/backends/internal/envelope"
	"queuelab/backends/internal/redisconn"
)

// tutorial implements redisconn.Held as the tutorials do. A message's token is its
// id, and an entry of the hash is the time in ms, the worker and the message.
type tutorial struct {
	q    *doing
	name string

	// Only for the goroutine that takes, and for Leave after it: what was popped
	// when HSET failed. A process that lives need not lose it.
	popped []string
}

// Take implements redisconn.Held: two commands, and a gap between them.
func (c *tutorial) Take(h *redisconn.Holder, _ int) ([]*redisconn.Taken, error) {
	if len(c.popped) == 0 {
		reply, err := h.Do("brpop", c.q.pending, int(redisconn.Block/time.Second))
		if err != nil {
			return nil, err
		}
		popped, err := redisconn.PoppedBy(reply, false)
		if err != nil || len(popped) == 0 {
			return nil, err
		}
		c.popped = []string{popped[0].Value}
	}
	t := &redisconn.Taken{Value: c.popped[0]}
	var body []byte
	if m, err := envelope.Decode(t.Value, &body); err == nil { // or it has no id, and is dropped
		t.Token = m.ID
		ctx, cancel := c.q.Within()
		defer cancel()
		entry := strconv.FormatInt(time.Now().UnixMilli(), 10) + " " + c.name + " " + t.Value
		if err := h.Client.HSet(ctx, c.q.doing, t.Token, entry).Err(); err != nil {
			return nil, err
		}
	}
	c.popped = nil
	return []*redisconn.Taken{t}, nil
}

// Ack implements redisconn.Held. Whose the entry is, nobody asks.
func (c *tutorial) Ack(ctx context.Context, h *redisconn.Holder, ts []*redisconn.Taken) ([]bool, error) {
	ids, yes := make([]string, len(ts)), make([]bool, len(ts))
	for i, t := range ts {
		ids[i], yes[i] = t.Token, true
	}
	return yes, h.Client.HDel(ctx, c.q.doing, ids...).Err()
}

// Nack implements redisconn.Held.
func (c *tutorial) Nack(ctx context.Context, h *redisconn.Holder, ts []*redisconn.Taken) ([]bool, error) {
	pipe := h.Client.Pipeline()
	yes := make([]bool, len(ts))
	for i, t := range ts {
		pipe.HDel(ctx, c.q.doing, t.Token)
		pipe.LPush(ctx, c.q.pending, t.Value)
		yes[i] = true
	}
	_, err := pipe.Exec(ctx)
	return yes, err
}

// Tend implements redisconn.Held: the rollback of what is overdue, with the gap
// between deleting and pushing.
func (c *tutorial) Tend(ctx context.Context, h *redisconn.Holder) error {
	entries, err := h.Client.HGetAll(ctx, c.q.doing).Result()
	if err != nil {
		return err
	}
	due := time.Now().Add(-c.q.claim).UnixMilli()
	for id, entry := range entries {
		parts := strings.SplitN(entry, " ", 3)
		since, err := strconv.ParseInt(parts[0], 10, 64)
		if err != nil || len(parts) < 3 || since > due {
			continue
		}
		n, err := h.Client.HDel(ctx, c.q.doing, id).Result()
		if err == nil && n == 1 { // otherwise another consumer's rollback has it
			err = h.Client.LPush(ctx, c.q.pending, parts[2]).Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Leave implements redisconn.Held.
func (c *tutorial) Leave(ctx context.Context, h *redisconn.Holder, ts []*redisconn.Taken) error {
	var errs []error
	if len(ts) > 0 {
		_, err := c.Nack(ctx, h, ts)
		errs = append(errs, err)
	}
	for _, v := range c.popped {
		errs = append(errs, h.Client.RPush(ctx, c.q.pending, v).Err())
	}
	return errors.Join(errs...)
}
