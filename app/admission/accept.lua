-- Puts the units of a move into the bucket that they are for, once: the number
-- of the last move from each bucket is kept. Returns 0 if the voucher was loaded
-- anew, which gave the units to a bucket already.
-- KEYS: sale, buyers.  ARGV: plan, the bucket that they are from, the move's number, units, and how many
-- of these are for sale.
local last = 'in:' .. ARGV[2]
local sold = redis.call('HMGET', KEYS[1], 'plan', 'stock', 'units', last)
local stock, units = tonumber(sold[2] or ''), tonumber(sold[3] or '')
if sold[1] ~= ARGV[1] or not (stock and units) then return 0 end
if tonumber(sold[4] or '0') >= tonumber(ARGV[3]) then return 1 end
units = units + tonumber(ARGV[4])
-- Buyers without units come first.
stock = math.min(stock + tonumber(ARGV[5]), math.max(0, units - redis.call('HLEN', KEYS[2])))
redis.call('HSET', KEYS[1], last, ARGV[3], 'stock', string.format('%.0f', stock), 'units', string.format('%.0f', units))
return 1
