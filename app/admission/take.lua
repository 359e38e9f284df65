-- Takes units out of a bucket for another one, and notes that: until the note is
-- gone there is no other move between the two, so whoever asks again, or instead
-- of one that died, gets the same. Returns the move's number, its units, and how
-- many of these are for sale; no units if there are none, and nothing if the
-- voucher was loaded anew.
-- KEYS: sale, buyers.  ARGV: plan, the bucket that they are for, most units, and '1' for units that
-- are neither held nor for sale.
local out = 'out:' .. ARGV[2]
local sold = redis.call('HMGET', KEYS[1], 'plan', 'stock', 'units', 'moved', out)
local stock, units = tonumber(sold[2] or ''), tonumber(sold[3] or '')
if sold[1] ~= ARGV[1] or not (stock and units) then return {} end
if sold[5] then
  local seq, n, sale = string.match(sold[5], '^(%d+)|(%d+)|(%d+)$')
  return {tonumber(seq), tonumber(n), tonumber(sale)}
end
local n = stock
if ARGV[4] == '1' then n = units - redis.call('HLEN', KEYS[2]) - stock end
n = math.min(n, tonumber(ARGV[3]))
if n <= 0 then return {0, 0, 0} end
local sale = ARGV[4] == '1' and 0 or n
local seq = tonumber(sold[4] or '0') + 1
redis.call('HSET', KEYS[1], 'moved', seq, out, string.format('%.0f|%.0f|%.0f', seq, n, sale),
  'stock', string.format('%.0f', stock - sale), 'units', string.format('%.0f', units - n))
return {seq, n, sale}
