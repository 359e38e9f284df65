-- What the gate says of a voucher at one moment: loaded, units, left, buyers, marks.
-- KEYS: sale, buyers, marks.
local sold = redis.call('HMGET', KEYS[1], 'stock', 'units')
local left, units = tonumber(sold[1] or ''), tonumber(sold[2] or '')
return {left and 1 or 0, units or 0, left or 0, redis.call('HLEN', KEYS[2]), redis.call('HLEN', KEYS[3])}
