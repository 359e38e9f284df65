-- Takes the marks that are due and makes each due again, as much later as it
-- has waited already, at most ten ages. Returns their bodies.
-- KEYS: marks, due.  ARGV: age in ms, most.
-- The index holds the time of the mark, and after the first look the time at
-- which it is due again less the age.
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
local age = tonumber(ARGV[1])
local ids = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - age, 'LIMIT', 0, ARGV[2])
local bodies = {}
for _, id in ipairs(ids) do
  local mark = redis.call('HGET', KEYS[1], id)
  local set, body = string.match(mark or '', '^(%d+)|(.*)$')
  if body then
    local waited = now - tonumber(set)
    redis.call('ZADD', KEYS[2], 'XX', now + math.max(0, math.min(waited, 10 * age) - age), id)
    bodies[#bodies + 1] = body
  else
    redis.call('ZREM', KEYS[2], id)
  end
end
return bodies
