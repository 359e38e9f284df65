-- Gives one unit back, once: only while this very order holds it. Returns 1 if it
-- did, and whether the buckets are uneven.
-- The buyer's keys stay: a late copy of the click must not buy again.
-- KEYS: sale, buyers, marks, due, keys.  ARGV: buyer's field, order.
local holder = redis.call('HGET', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[2])
redis.call('ZREM', KEYS[4], ARGV[2])
if holder ~= ARGV[2] then return {0, uneven()} end
free(ARGV[1])
return {1, uneven()}
