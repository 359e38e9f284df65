-- Closes a bucket until the plan opens it, and drops the moves of before: the
-- plan counts their units. Buyers and marks stay. Returns how many units are
-- held; -1 if a later plan was here.
-- KEYS: sale, buyers.  ARGV: plan.
local had = redis.call('HGET', KEYS[1], 'plan')
if had and tonumber(had) > tonumber(ARGV[1]) then return -1 end
if had ~= ARGV[1] then
  redis.call('HSET', KEYS[1], 'plan', ARGV[1])
  redis.call('HDEL', KEYS[1], 'stock', 'units', 'moved', 'owed')
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if string.match(field, '^out:') or string.match(field, '^in:') then redis.call('HDEL', KEYS[1], field) end
  end
end
return redis.call('HLEN', KEYS[2])
