-- Release for an order whose publish was rejected. Returns 1 if the unit was
-- given back; 2, and nothing is changed, if a rescan took the order up
-- meanwhile, as the index then says another time than the mark; 0 otherwise. The
-- second number is that of release.lua.
-- KEYS: sale, buyers, marks, due, keys.  ARGV: buyer's field, order.
local sold = redis.call('HMGET', KEYS[1], 'stock', 'units', 'owed')
local stock, units = tonumber(sold[1] or ''), tonumber(sold[2] or '')
-- Units on their way count: those who send them may have died.
local function uneven()
  if not sold[3] then return 0 end
  if stock and stock > 0 then return 1 end
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if string.match(field, '^out:') then return 1 end
  end
  return 0
end
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
redis.call('HDEL', KEYS[2], ARGV[1])
-- As in release.lua.
if stock and units then
  stock = math.min(stock + 1, math.max(0, units - redis.call('HLEN', KEYS[2])))
  redis.call('HSET', KEYS[1], 'stock', string.format('%.0f', stock))
end
return {1, uneven()}
