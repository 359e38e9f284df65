-- Changes the units of a bucket if they are still what was read. Returns 1 if it did.
-- KEYS: sale.  ARGV: plan, units that it had, units that it shall have.
local sold = redis.call('HMGET', KEYS[1], 'plan', 'units')
if sold[1] ~= ARGV[1] or sold[2] ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'units', ARGV[3])
return 1
