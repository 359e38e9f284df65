-- Gives one unit back, once: only while this very order holds it.
-- KEYS: sale, buyers, marks, due, keys.  ARGV: buyer's field, order.
local holder = redis.call('HGET', KEYS[2], ARGV[1])
local loaded = redis.call('HEXISTS', KEYS[1], 'stock')
redis.call('HDEL', KEYS[3], ARGV[2])
redis.call('ZREM', KEYS[4], ARGV[2])
redis.call('HDEL', KEYS[5], ARGV[2])
if holder ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[2], ARGV[1])
-- A voucher that is not loaded counts its buyers when it is.
if loaded == 1 then redis.call('HINCRBY', KEYS[1], 'stock', 1) end
return 1
