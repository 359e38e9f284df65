-- Forgets a move that was accepted.
-- KEYS: sale.  ARGV: plan, the bucket that it was for, the move's number.
local out = 'out:' .. ARGV[2]
local sold = redis.call('HMGET', KEYS[1], 'plan', out)
if sold[1] ~= ARGV[1] or string.match(sold[2] or '', '^(%d+)|') ~= ARGV[3] then return 0 end
return redis.call('HDEL', KEYS[1], out)
