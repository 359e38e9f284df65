package rediszset

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

// delayed is an encoded message, and when it may be delivered.
type delayed struct {
	value *redisconn.Value
	delay time.Duration
	err   error // it is not to be published
}

func (q *zset) encode(msgs []queue.Message) []delayed {
	all := make([]delayed, len(msgs))
	for i, v := range redisconn.Envelopes(msgs) {
		all[i].value = v
		all[i].delay, all[i].err = q.delayOf(msgs[i])
	}
	return all
}

// add is one script for all: the server takes all of them or none.
func (q *zset) add(ctx context.Context, c *redis.Client, ds []delayed, results []redisconn.Sent) {
	args := make([]any, 0, 2*len(ds))
	for _, d := range ds {
		if d.err == nil {
			args = append(args, d.delay.Milliseconds(), d.value)
		}
	}
	var err error
	if len(args) > 0 {
		_, err = redisconn.Run(ctx, c, addScript, q.keys(), args...)
	}
	for i, d := range ds {
		if results[i].Err = err; d.err != nil {
			results[i].Err = d.err
		}
	}
}

// consumer implements redisconn.Held. A message's token is its member of the set,
// and its lease is the score among what was taken.
type consumer struct{ q *zset }

// numberSize is how long the number is that a member begins with.
const numberSize = 16

// Take implements redisconn.Held.
func (c *consumer) Take(h *redisconn.Holder, most int) ([]*redisconn.Taken, error) {
	ts, wait, err := c.take(h, min(most, c.q.batch))
	if len(ts) > 0 || err != nil {
		return ts, err
	}
	seconds := strconv.FormatFloat(wait.Seconds(), 'f', 3, 64)
	if reply, err := h.Do("brpop", c.q.bell(), seconds); err != nil || reply.None() && wait >= redisconn.Block {
		return nil, err
	}
	ts, _, err = c.take(h, min(most, c.q.batch))
	return ts, err
}

// take returns how long there is nothing to take, where there is nothing: at least
// a millisecond, and at most Block.
func (c *consumer) take(h *redisconn.Holder, n int) ([]*redisconn.Taken, time.Duration, error) {
	r, err := h.Run(takeScript, c.q.keys(), n, c.q.claim.Milliseconds(), redisconn.Block.Milliseconds())
	if err != nil {
		return nil, 0, err
	}
	if _, err = r.Array(); err != nil {
		return nil, 0, err
	}
	wait, err := r.Int()
	if err != nil {
		return nil, 0, err
	}
	lease, err := r.Text()
	if err != nil {
		return nil, 0, err
	}
	got, err := r.Array()
	ts := make([]*redisconn.Taken, 0, max(got, 0)/2)
	for i := 0; i < got && err == nil; i += 2 {
		t := &redisconn.Taken{Lease: lease}
		if t.Token, err = r.Text(); err != nil {
			break
		}
		var attempt int64
		if attempt, err = r.Int(); err != nil {
			break
		}
		t.Attempt = int(attempt)
		if len(t.Token) >= numberSize { // or somebody else has put it there
			t.Value = t.Token[numberSize:]
		}
		ts = append(ts, t)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("take: %w", err)
	}
	return ts, time.Duration(max(wait, 1)) * time.Millisecond, nil
}

// Ack implements redisconn.Held.
func (c *consumer) Ack(ctx context.Context, h *redisconn.Holder, ts []*redisconn.Taken) ([]bool, error) {
	return h.Flags(ctx, len(ts), ackScript, c.q.keys(), leased(ts)...)
}

// Nack implements redisconn.Held.
func (c *consumer) Nack(ctx context.Context, h *redisconn.Holder, ts []*redisconn.Taken) ([]bool, error) {
	return h.Flags(ctx, len(ts), nackScript, c.q.keys(), leased(ts)...)
}

func leased(ts []*redisconn.Taken) []any {
	args := make([]any, 0, 2*len(ts))
	for i := range ts {
		args = append(args, &ts[i].Lease, &ts[i].Token) // pointers need no allocations of their own
	}
	return args
}

// Tend implements redisconn.Held.
func (c *consumer) Tend(context.Context, *redisconn.Holder) error { return nil }

// Leave implements redisconn.Held.
func (c *consumer) Leave(ctx context.Context, h *redisconn.Holder, ts []*redisconn.Taken) error {
	if len(ts) == 0 {
		return nil
	}
	_, err := c.Nack(ctx, h, ts)
	return err
}

// All scripts take all keys of the queue.
const (
	head = `
local queue, taken, attempts, bell, last = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local function number(member) return member:sub(1, 16) end
`
	// ring: as often as there is something new, and no more than matters.
	ring = `
local function ring(n)
	for _ = 1, math.min(n, 100) do redis.call('LPUSH', bell, 1) end
	redis.call('LTRIM', bell, 0, 99)
end
`
	// mine finds, in arguments of lease and member, those that are still taken by that
	// lease, does something with each, and returns a flag for each.
	mine = `
local function mine(do_with)
	local out, n = {}, 0
	for i = 1, #ARGV, 2 do
		local lease, member, flag = ARGV[i], ARGV[i + 1], 0
		if tonumber(redis.call('ZSCORE', taken, member) or 'nan') == tonumber(lease) then
			redis.call('ZREM', taken, member)
			do_with(member)
			flag, n = 1, n + 1
		end
		out[#out + 1] = flag
	end
	return out, n
end
`
)

var (
	// add: delay in ms and value of each. The bell first: whatever fails, nothing was
	// added then.
	addScript = redis.NewScript(head + redisconn.Clock + ring + `
local n = #ARGV / 2
local first = redis.call('INCRBY', last, n) - n
ring(n)
for i = 1, n do
	redis.call('ZADD', queue, now + tonumber(ARGV[2 * i - 1]), string.format('%016.0f', first + i) .. ARGV[2 * i])
end
return n`)

	// take: count, claim in ms, longest wait in ms. What was not acked in time comes
	// first. Returns how long there is nothing, the lease, and each member with its
	// attempt.
	takeScript = redis.NewScript(head + redisconn.Clock + `
for _, member in ipairs(redis.call('ZRANGEBYSCORE', taken, '-inf', now, 'LIMIT', 0, 1000)) do
	redis.call('ZREM', taken, member)
	redis.call('ZADD', queue, 0, member)
end
local members = redis.call('ZRANGEBYSCORE', queue, '-inf', now, 'LIMIT', 0, tonumber(ARGV[1]))
if #members == 0 then
	redis.call('DEL', bell)
	local wait = tonumber(ARGV[3])
	for _, set in ipairs({queue, taken}) do
		local next = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')[2]
		if next then wait = math.min(wait, tonumber(next) - now) end
	end
	return {wait, '', {}}
end
local lease, out = string.format('%.0f', now + tonumber(ARGV[2])), {}
for _, member in ipairs(members) do
	redis.call('ZREM', queue, member)
	redis.call('ZADD', taken, lease, member)
	out[#out + 1] = member
	out[#out + 1] = redis.call('HINCRBY', attempts, number(member), 1)
end
return {0, lease, out}`)

	ackScript = redis.NewScript(head + mine + `
return (mine(function(member) redis.call('HDEL', attempts, number(member)) end))`)

	nackScript = redis.NewScript(head + ring + mine + `
local out, n = mine(function(member) redis.call('ZADD', queue, 0, member) end)
if n > 0 then ring(n) end
return out`)

	// count: what waits, also for its time, and what is taken.
	countScript = redis.NewScript(head + redisconn.Clock + `
local held = redis.call('ZCOUNT', taken, '(' .. string.format('%.0f', now), '+inf')
return {redis.call('ZCARD', queue) + redis.call('ZCARD', taken) - held, held}`)
)
