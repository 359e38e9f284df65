-- Clears the marks of orders that are in the database, and has their buyers
-- hold them: a Redis that lost its keys was loaded before they were committed.
-- Returns 2 if more is held in this bucket than it has.
-- KEYS: sale, buyers, marks, due.  ARGV: buyer's field, order, and so on.
local missed = false
for i = 1, #ARGV, 2 do
  redis.call('HDEL', KEYS[3], ARGV[i + 1])
  redis.call('ZREM', KEYS[4], ARGV[i + 1])
  if redis.call('HGET', KEYS[2], ARGV[i]) ~= ARGV[i + 1] then
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
    missed = true
  end
end
local sold = redis.call('HMGET', KEYS[1], 'stock', 'units')
local stock, units = tonumber(sold[1] or ''), tonumber(sold[2] or '')
if not (stock and units) then return 0 end
local most = units - redis.call('HLEN', KEYS[2])
if missed and stock > math.max(0, most) then redis.call('HSET', KEYS[1], 'stock', string.format('%.0f', math.max(0, most))) end
return most < 0 and 2 or 0
