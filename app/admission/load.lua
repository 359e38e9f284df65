-- Opens a bucket that is not loaded. Returns 1 if it did.
-- KEYS: sale, buyers.  ARGV: units when the sale began, most units left, begin and end in ms,
-- units that one buyer may have, most marks or 0; and where there are several buckets, the plan
-- and how many they are.
local loaded = true
for _, number in ipairs({'stock', 'units', 'begin', 'end'}) do
  -- One that nobody can read is as if it were not there.
  loaded = loaded and string.match(redis.call('HGET', KEYS[1], number) or '', '^%-?%d+$')
end
if loaded then return 0 end
local fields = {}
if ARGV[7] then
  -- Not that of the plan: it lost its keys since, and nobody knows its share.
  if redis.call('HGET', KEYS[1], 'plan') ~= ARGV[7] then return 0 end
  fields = {'done', ARGV[7], 'buckets', ARGV[8]}
end
local left = tonumber(ARGV[1]) - redis.call('HLEN', KEYS[2])
left = math.max(0, math.min(left, tonumber(ARGV[2])))
redis.call('HSET', KEYS[1], 'stock', string.format('%.0f', left), 'units', ARGV[1], 'begin', ARGV[3], 'end', ARGV[4], 'each', ARGV[5], 'most', ARGV[6], unpack(fields))
return 1
