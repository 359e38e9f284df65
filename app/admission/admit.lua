-- One click, in one atomic step. Returns {code, order that holds the unit}.
-- KEYS: sale, buyers, marks, due.  ARGV: user, order, body.
-- Ids are never made numbers: a double loses the last digits of 63 bits.
local sold = redis.call('HMGET', KEYS[1], 'stock', 'begin', 'end')
local holder = redis.call('HGET', KEYS[2], ARGV[1])
-- Reading every key before the first write: a key of the wrong type fails
-- here, where nothing was done yet. A script is isolated but never rolled back.
redis.call('HLEN', KEYS[3])
redis.call('ZCARD', KEYS[4])

local stock, opens, ends = tonumber(sold[1] or ''), tonumber(sold[2] or ''), tonumber(sold[3] or '')
if not (stock and opens and ends) then return {6, ''} end
if holder == ARGV[2] then return {1, holder} end

local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
if now < opens then return {4, ''} end
if now >= ends then return {5, ''} end
if holder then return {2, holder} end
if stock <= 0 then return {3, ''} end

-- The first write is one that Redis refuses when its memory is full; once it
-- went through, Redis lets the rest of the script finish.
redis.call('HSET', KEYS[3], ARGV[2], string.format('%.0f', now) .. '|' .. ARGV[3])
redis.call('ZADD', KEYS[4], now, ARGV[2])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('HINCRBY', KEYS[1], 'stock', -1)
return {1, ARGV[2]}
