package redissharded

import "github.com/redis/go-redis/v9"

// owner is the one consumer that Redis knows in each group of a partition: who
// has the partition takes over all that is pending in it by reading it.
const owner = "owner"

// Both kinds of keys belong to a group. members is a sorted set of the names of
// its consumers by the time at which their lease ends, in ms by the broker's
// clock. owners is a hash from a partition to the token of its lease, which is a
// name and a number that no other lease has.
var (
	// balance: keys members, owners; name, lease in ms, how many partitions there
	// are, then numbers and tokens of those that are given up. Renews the name's
	// lease, and takes free partitions up to the name's share. Returns the share,
	// and then number and token of each partition that is the name's.
	balanceScript = redis.NewScript(`
local members, owners = KEYS[1], KEYS[2]
local me, n = ARGV[1], tonumber(ARGV[3])
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', members, '-inf', now)
redis.call('ZADD', members, now + tonumber(ARGV[2]), me)
for i = 4, #ARGV, 2 do
	if redis.call('HGET', owners, ARGV[i]) == ARGV[i + 1] then redis.call('HDEL', owners, ARGV[i]) end
end
local names = redis.call('ZRANGE', members, 0, -1)
table.sort(names)
local rank, alive = 0, {}
for i, name in ipairs(names) do
	alive[name] = true
	if name == me then rank = i end
end
local share = math.floor(n / #names)
if rank <= n % #names then share = share + 1 end
local out, free, mine = {share}, {}, 0
for i = 0, n - 1 do
	local token = redis.call('HGET', owners, tostring(i))
	local name = token and token:match('^(%S+) ')
	if name == me then
		mine = mine + 1
		out[#out + 1] = i
		out[#out + 1] = token
	elseif not name or not alive[name] then
		free[#free + 1] = i
	end
end
for _, i in ipairs(free) do
	if mine >= share then break end
	local token = me .. ' ' .. redis.call('HINCRBY', owners, 'epoch', 1)
	redis.call('HSET', owners, tostring(i), token)
	mine = mine + 1
	out[#out + 1] = i
	out[#out + 1] = token
end
return out`)

	// ack: keys owners, then the stream of each partition; group, then for each
	// its number, the token of the lease, how many ids, and the ids. Returns for
	// each whether the lease was valid.
	ackScript = redis.NewScript(`
local out, at = {}, 2
for k = 2, #KEYS do
	local last = at + 2 + tonumber(ARGV[at + 2])
	local mine = redis.call('HGET', KEYS[1], ARGV[at]) == ARGV[at + 1]
	if mine then redis.call('XACK', KEYS[k], ARGV[1], unpack(ARGV, at + 3, last)) end
	out[#out + 1] = mine and 1 or 0
	at = last + 1
end
return out`)

	// leave: keys members, owners; name. Gives up all that is the name's.
	leaveScript = redis.NewScript(`
redis.call('ZREM', KEYS[1], ARGV[1])
local all = redis.call('HGETALL', KEYS[2])
for i = 1, #all, 2 do
	if all[i + 1]:match('^(%S+) ') == ARGV[1] then redis.call('HDEL', KEYS[2], all[i]) end
end
return 1`)
)
