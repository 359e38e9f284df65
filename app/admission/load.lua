-- Opens a voucher that is not loaded. Returns 1 if it did.
-- KEYS: sale, buyers.  ARGV: units when the sale began, most units left, begin and end in ms,
-- units that one buyer may have, most marks or 0.
if redis.call('HEXISTS', KEYS[1], 'stock') == 1 then return 0 end
local left = tonumber(ARGV[1]) - redis.call('HLEN', KEYS[2])
left = math.max(0, math.min(left, tonumber(ARGV[2])))
redis.call('HSET', KEYS[1], 'stock', string.format('%.0f', left), 'units', ARGV[1], 'begin', ARGV[3], 'end', ARGV[4], 'each', ARGV[5], 'most', ARGV[6])
return 1
