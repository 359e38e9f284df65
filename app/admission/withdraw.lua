-- Release for an order whose publish was rejected. Returns 1 if the unit was
-- given back; 2, and nothing is changed, if a rescan took the order up
-- meanwhile, as the index then says another time than the mark; 0 otherwise.
-- KEYS: sale, buyers, marks, due, keys.  ARGV: buyer's field, order.
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then return 0 end
local set = string.match(redis.call('HGET', KEYS[3], ARGV[2]) or '', '^(%d+)|')
if not set or tonumber(redis.call('ZSCORE', KEYS[4], ARGV[2]) or '') ~= tonumber(set) then return 2 end
local loaded = redis.call('HEXISTS', KEYS[1], 'stock')
redis.call('HDEL', KEYS[3], ARGV[2])
redis.call('ZREM', KEYS[4], ARGV[2])
redis.call('HDEL', KEYS[5], ARGV[2])
redis.call('HDEL', KEYS[2], ARGV[1])
if loaded == 1 then redis.call('HINCRBY', KEYS[1], 'stock', 1) end
return 1
