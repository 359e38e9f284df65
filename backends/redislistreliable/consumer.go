package redislistreliable

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/redisconn"
)

// consumer implements redisconn.Held. A message's token is the value that stands
// on the processing list.
type consumer struct {
	q          *reliable
	name       string
	processing string

	// Only for the goroutine that takes. In doubt a take has failed, and may have
	// moved messages that nobody was told of; it may do so after the look for them,
	// where the network held it back, or be one that go-redis has sent twice.
	doubt  bool
	looked time.Time
}

// keepNames is how long the name of a dead consumer is looked under. A BLMOVE that
// was on its way when its consumer died can still arrive for as long as the dead
// connection's data are sent again.
const keepNames = time.Hour

// Take implements redisconn.Held.
func (c *consumer) Take(h *redisconn.Holder, most int) ([]*redisconn.Taken, error) {
	values, err := c.take(h, min(most, c.q.batch))
	if err != nil {
		c.doubt = true
		return nil, err
	}
	ts := make([]*redisconn.Taken, len(values))
	for i, v := range values {
		ts[i] = &redisconn.Taken{Token: v}
		ts[i].Attempt, ts[i].Value = redisconn.AttemptOf(v)
	}
	return ts, nil
}

func (c *consumer) take(h *redisconn.Holder, n int) ([]string, error) {
	if c.doubt || time.Since(c.looked) >= c.q.claim {
		values, err := c.reread(h)
		if err != nil {
			return nil, err
		}
		if c.doubt, c.looked = false, time.Now(); len(values) > 0 {
			return values, nil
		}
	}
	if n > 1 {
		reply, err := h.Run(takeScript, []string{c.q.key, c.processing}, n)
		if err != nil {
			return nil, err
		}
		if values, err := reply.Texts(); len(values) > 0 || err != nil {
			return values, err
		}
	}
	reply, err := h.Do("blmove", c.q.key, c.processing, "right", "left", int(redisconn.Block/time.Second))
	if err != nil || reply.None() {
		return nil, err
	}
	value, err := reply.Text()
	if err != nil {
		return nil, err
	}
	return []string{value}, nil
}

// reread returns what stands on the own processing list and was never told. The
// name is registered first: the broker may have forgotten it.
func (c *consumer) reread(h *redisconn.Holder) ([]string, error) {
	ctx, cancel := c.q.Within()
	defer cancel()
	if err := c.Tend(ctx, h); err != nil {
		return nil, err
	}
	// What is in hand now may be acked before the list is read, but not the other
	// way round.
	hand := h.Hand()
	all, err := h.Client.LRange(ctx, c.processing, 0, -1).Result()
	if err != nil {
		return nil, err
	}
	var untold []string
	for i := len(all) - 1; i >= 0; i-- { // the oldest is the last
		if v := all[i]; hand[v] > 0 {
			hand[v]--
		} else {
			untold = append(untold, v)
		}
	}
	return untold, nil
}

// Ack implements redisconn.Held.
func (c *consumer) Ack(ctx context.Context, h *redisconn.Holder, ts []*redisconn.Taken) ([]bool, error) {
	return h.Flags(ctx, len(ts), ackScript, []string{c.processing}, redisconn.Tokens(ts)...)
}

// Nack implements redisconn.Held.
func (c *consumer) Nack(ctx context.Context, h *redisconn.Holder, ts []*redisconn.Taken) ([]bool, error) {
	return h.Flags(ctx, len(ts), nackScript, []string{c.q.key, c.processing}, redisconn.Tokens(ts)...)
}

// Tend implements redisconn.Held.
func (c *consumer) Tend(ctx context.Context, h *redisconn.Holder) error {
	_, err := redisconn.Run(ctx, h.Client, tendScript, []string{c.q.key, c.q.names()},
		c.name, c.q.claim.Milliseconds(), keepNames.Milliseconds())
	return err
}

// Leave implements redisconn.Held. It gives back all that stands under the name,
// told or not.
func (c *consumer) Leave(ctx context.Context, h *redisconn.Holder, _ []*redisconn.Taken) error {
	_, err := redisconn.Run(ctx, h.Client, leaveScript, []string{c.q.key, c.q.names()}, c.name)
	return err
}

const (
	// giveBack empties a processing list into the queue: the newest first, so that
	// the oldest is the next to be taken.
	giveBack = redisconn.Again + `
local function give_back(name)
	local list = KEYS[1] .. ':processing:' .. name
	while true do
		local v = redis.call('LPOP', list)
		if not v then return end
		redis.call('RPUSH', KEYS[1], again(v))
	end
end
`
)

var (
	// take: queue, processing; count. Returns the values, oldest first.
	takeScript = redis.NewScript(`
local out = {}
for i = 1, tonumber(ARGV[1]) do
	local v = redis.call('LMOVE', KEYS[1], KEYS[2], 'RIGHT', 'LEFT')
	if not v then break end
	out[i] = v
end
return out`)

	// ack: processing; values. The oldest stand at the end, and are acked first.
	ackScript = redis.NewScript(`
local out = {}
for i, v in ipairs(ARGV) do out[i] = redis.call('LREM', KEYS[1], -1, v) end
return out`)

	// nack: queue, processing; values, the oldest first.
	nackScript = redis.NewScript(redisconn.Again + `
local out = {}
for i = #ARGV, 1, -1 do
	out[i] = redis.call('LREM', KEYS[2], -1, ARGV[i])
	if out[i] == 1 then redis.call('RPUSH', KEYS[1], again(ARGV[i])) end
end
return out`)

	// tend: queue, names; own name, lease in ms, how long a dead name is kept in ms.
	// Renews the own name, and gives back what stands under those that ran out.
	tendScript = redis.NewScript(redisconn.Clock + giveBack + `
redis.call('ZADD', KEYS[2], now + tonumber(ARGV[2]), ARGV[1])
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)) do give_back(name) end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - tonumber(ARGV[3]))
return 0`)

	// leave: queue, names; own name. The name runs out and stays: see keepNames.
	leaveScript = redis.NewScript(redisconn.Clock + giveBack + `
give_back(ARGV[1])
redis.call('ZADD', KEYS[2], now, ARGV[1])
return 0`)

	// count: queue, names. Returns what waits, and what stands under names.
	countScript = redis.NewScript(`
local held = 0
for _, name in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
	held = held + redis.call('LLEN', KEYS[1] .. ':processing:' .. name)
end
return {redis.call('LLEN', KEYS[1]), held}`)
)
