package redisdoing

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/redisconn"
)

// atomic implements redisconn.Held with scripts. A message's token is of this
// taking alone, so that a late settle finds nothing of anybody else's.
type atomic struct {
	q     *doing
	name  string
	takes int // only for the goroutine that takes
}

func (c *atomic) keys() []string { return []string{c.q.pending, c.q.doing} }

// Take implements redisconn.Held.
func (c *atomic) Take(h *redisconn.Holder, most int) ([]*redisconn.Taken, error) {
	ts, err := c.take(h, min(most, c.q.batch))
	if len(ts) > 0 || err != nil {
		return ts, err
	}
	// To where it is: this moves nothing, and waits until there is something.
	reply, err := h.Do("blmove", c.q.pending, c.q.pending, "right", "right", int(redisconn.Block/time.Second))
	if err != nil || reply.None() {
		return nil, err
	}
	return c.take(h, min(most, c.q.batch))
}

func (c *atomic) take(h *redisconn.Holder, n int) ([]*redisconn.Taken, error) {
	c.takes++
	token := c.name + "-" + strconv.Itoa(c.takes) + "-"
	reply, err := h.Run(takeScript, c.keys(), n, token, c.name)
	if err != nil {
		return nil, err
	}
	values, err := reply.Texts()
	if err != nil {
		return nil, err
	}
	ts := make([]*redisconn.Taken, len(values))
	for i, v := range values {
		ts[i] = &redisconn.Taken{Token: token + strconv.Itoa(i+1)}
		ts[i].Attempt, ts[i].Value = redisconn.AttemptOf(v)
	}
	return ts, nil
}

// Ack implements redisconn.Held.
func (c *atomic) Ack(ctx context.Context, h *redisconn.Holder, ts []*redisconn.Taken) ([]bool, error) {
	return h.Flags(ctx, len(ts), ackScript, c.keys(), redisconn.Tokens(ts)...)
}

// Nack implements redisconn.Held.
func (c *atomic) Nack(ctx context.Context, h *redisconn.Holder, ts []*redisconn.Taken) ([]bool, error) {
	return h.Flags(ctx, len(ts), nackScript, c.keys(), redisconn.Tokens(ts)...)
}

// Tend implements redisconn.Held: the rollback of what is overdue.
func (c *atomic) Tend(ctx context.Context, h *redisconn.Holder) error {
	_, err := redisconn.Run(ctx, h.Client, rollbackScript, c.keys(), c.q.claim.Milliseconds())
	return err
}

// Leave implements redisconn.Held. What was taken by a reply that was lost is
// overdue in time.
func (c *atomic) Leave(ctx context.Context, h *redisconn.Holder, ts []*redisconn.Taken) error {
	if len(ts) == 0 {
		return nil
	}
	_, err := c.Nack(ctx, h, ts)
	return err
}

// All scripts take the keys pending and doing. An entry is the time in ms, the
// worker and the message.
const (
	rollback = redisconn.Again + `
local function rollback(token, v)
	redis.call('HDEL', KEYS[2], token)
	redis.call('LPUSH', KEYS[1], again(v))
end
local function read(entry) return entry:match('^(%d+) %S+ (.*)$') end
`
)

var (
	// take: count, how the tokens begin, worker. Returns the values, oldest first. A
	// client library that sends it again, since the reply was lost, gets the same.
	takeScript = redis.NewScript(redisconn.Clock + rollback + `
local out = {}
for i = 1, tonumber(ARGV[1]) do
	local token, v = ARGV[2] .. i
	local entry = redis.call('HGET', KEYS[2], token)
	if entry then
		local _
		_, v = read(entry)
	else
		v = redis.call('RPOP', KEYS[1])
		if not v then break end
		redis.call('HSET', KEYS[2], token, string.format('%.0f %s ', now, ARGV[3]) .. v)
	end
	out[i] = v
end
return out`)

	// ack: tokens.
	ackScript = redis.NewScript(`
local out = {}
for i, token in ipairs(ARGV) do out[i] = redis.call('HDEL', KEYS[2], token) end
return out`)

	// nack: tokens.
	nackScript = redis.NewScript(rollback + `
local out = {}
for i, token in ipairs(ARGV) do
	local entry = redis.call('HGET', KEYS[2], token)
	out[i] = 0
	if entry then
		local _, v = read(entry)
		rollback(token, v)
		out[i] = 1
	end
end
return out`)

	// rollback: how long a message may be worked on, in ms.
	rollbackScript = redis.NewScript(redisconn.Clock + rollback + `
local all = redis.call('HGETALL', KEYS[2])
for i = 1, #all, 2 do
	local since, v = read(all[i + 1]) -- none where somebody else has written it
	if since and tonumber(since) <= now - tonumber(ARGV[1]) then rollback(all[i], v) end
end
return 0`)
)
