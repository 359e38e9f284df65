-- Changes the units left by what they differ from those that nobody holds, and
-- returns the change. A difference, never a number to be set: what clicks took
-- before this step is among the buyers, and what they take after it is their own.
-- KEYS: sale, buyers.  ARGV: how far the units may be raised, and where there is one bucket the
-- units when the sale began.
local sold = redis.call('HMGET', KEYS[1], 'stock', 'units')
local left, units = tonumber(sold[1] or ''), tonumber(sold[2] or '')
if not (left and units) then return 0 end
if ARGV[2] and sold[2] ~= ARGV[2] then
  units = tonumber(ARGV[2])
  redis.call('HSET', KEYS[1], 'units', ARGV[2])
end
local change = math.max(0, units - redis.call('HLEN', KEYS[2])) - left
if change > 0 then change = math.max(0, math.min(change, tonumber(ARGV[1]) - left)) end
if change ~= 0 then redis.call('HINCRBY', KEYS[1], 'stock', string.format('%.0f', change)) end
return change
