-- Release for an order whose publish was rejected. Returns 1 if the unit was
-- given back; 2, and nothing is changed, if a rescan took the order up
-- meanwhile, as the index then says another time than the mark; 0 otherwise. The
-- second number is that of release.lua.
-- KEYS: sale, buyers, marks, due, keys.  ARGV: buyer's field, order.
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then return {0, uneven()} end
-- The buyer is told to try again, and may do that with the same key.
local user = string.match(ARGV[1], '^[^#]*')
local wishes, left = redis.call('HGET', KEYS[5], user), ''
local set = string.match(redis.call('HGET', KEYS[3], ARGV[2]) or '', '^(%d+)|')
if not set or tonumber(redis.call('ZSCORE', KEYS[4], ARGV[2]) or '') ~= tonumber(set) then return {2, 0} end
redis.call('HDEL', KEYS[3], ARGV[2])
redis.call('ZREM', KEYS[4], ARGV[2])
if wishes then
  for key, order in string.gmatch(wishes, ' (%S+) (%S+)') do
    if order ~= ARGV[2] then left = left .. ' ' .. key .. ' ' .. order end
  end
  if left == '' then redis.call('HDEL', KEYS[5], user) else redis.call('HSET', KEYS[5], user, left) end
end
free(ARGV[1])
return {1, uneven()}
