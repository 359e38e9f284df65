-- Begins to load a voucher of several buckets, or joins who does. Returns the
-- plan's number: later ones are greater, by the clock, so that this is so after
-- Redis has lost them; '' if one was done since somebody looked.
-- KEYS: sale of the first bucket.  ARGV: the greatest number that is known, the
-- plan that was done last.
local had = redis.call('HMGET', KEYS[1], 'begun', 'done')
if had[1] and had[1] ~= had[2] then return had[1] end
if had[2] and had[2] ~= ARGV[2] then return '' end
local t = redis.call('TIME')
local plan = math.max(tonumber(t[1]) * 1000000 + tonumber(t[2]), tonumber(ARGV[1]) + 1, tonumber(had[1] or '0') + 1)
plan = string.format('%.0f', plan)
redis.call('HSET', KEYS[1], 'begun', plan)
redis.call('HDEL', KEYS[1], 'shares')
return plan
