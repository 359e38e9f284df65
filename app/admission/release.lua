-- Gives one unit back, once: only while this very order holds it. Returns 1 if it
-- did, and 1 if this bucket has units, or sends some, while buyers of another one have none.
-- The buyer's keys stay: a late copy of the click must not buy again.
-- KEYS: sale, buyers, marks, due, keys.  ARGV: buyer's field, order.
local holder = redis.call('HGET', KEYS[2], ARGV[1])
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
redis.call('HDEL', KEYS[3], ARGV[2])
redis.call('ZREM', KEYS[4], ARGV[2])
if holder ~= ARGV[2] then return {0, uneven()} end
redis.call('HDEL', KEYS[2], ARGV[1])
-- A voucher that is not loaded counts its buyers when it is. More buyers may be
-- known than there are units, where the gate learned of some too late: then this
-- unit is one of those that nobody has.
if stock and units then
  stock = math.min(stock + 1, math.max(0, units - redis.call('HLEN', KEYS[2])))
  redis.call('HSET', KEYS[1], 'stock', string.format('%.0f', stock))
end
return {1, uneven()}
