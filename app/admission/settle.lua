-- Clears the marks of orders that are in the database, and has their buyers
-- hold them: a Redis that lost its keys was loaded before they were committed.
-- Returns 2 if more is held in this bucket than it has.
-- KEYS: sale, buyers, marks, due.  ARGV: buyer's field, order, and so on.
for from = 1, #ARGV, 1000 do -- Lua cannot unpack any number
  local fields, orders, holder = {}, {}, {}
  for i = from, math.min(from + 999, #ARGV), 2 do
    fields[#fields + 1], orders[#orders + 1] = ARGV[i], ARGV[i + 1]
  end
  redis.call('HDEL', KEYS[3], unpack(orders))
  redis.call('ZREM', KEYS[4], unpack(orders))
  for i, order in ipairs(redis.call('HMGET', KEYS[2], unpack(fields))) do
    holder[fields[i]] = order
  end
  for i, order in ipairs(orders) do
    if holder[fields[i]] ~= order then
      redis.call('HSET', KEYS[2], fields[i], order)
      holder[fields[i]] = order
    end
  end
end
local sold = redis.call('HMGET', KEYS[1], 'stock', 'units')
local stock, units = tonumber(sold[1] or ''), tonumber(sold[2] or '')
if not (stock and units) then return 0 end
local most = units - redis.call('HLEN', KEYS[2])
if stock > math.max(0, most) then redis.call('HSET', KEYS[1], 'stock', string.format('%.0f', math.max(0, most))) end
return most < 0 and 2 or 0
