-- Puts marks into the index of what is due that are not in it: due an age after
-- they were set, as if they had been there all the time.
-- KEYS: marks, due.  ARGV: orders.
local n = 0
for _, order in ipairs(ARGV) do
  local set = string.match(redis.call('HGET', KEYS[1], order) or '', '^(%d+)|')
  if set then n = n + redis.call('ZADD', KEYS[2], 'NX', set, order) end
end
return n
