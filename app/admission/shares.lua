-- Settles which bucket gets what: the first who says so decides. Returns '' if
-- the plan is done, or another one was begun.
-- KEYS: sale of the first bucket.  ARGV: plan, shares.
local had = redis.call('HMGET', KEYS[1], 'begun', 'done', 'shares')
if had[1] ~= ARGV[1] or had[2] == ARGV[1] then return '' end
if had[3] then return had[3] end
redis.call('HSET', KEYS[1], 'shares', ARGV[2])
return ARGV[2]
