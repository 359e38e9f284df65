-- What the scripts that give a unit back share; it stands before them.
-- KEYS: sale, buyers.
local sold = redis.call('HMGET', KEYS[1], 'stock', 'units', 'owed')
local stock, units = tonumber(sold[1] or ''), tonumber(sold[2] or '')

-- free takes the unit from its buyer. A voucher that is not loaded counts its
-- buyers when it is. More buyers may be known than there are units, where the gate
-- learned of some too late: then this unit is one of those that nobody has.
local function free(field)
  redis.call('HDEL', KEYS[2], field)
  if stock and units then
    stock = math.min(stock + 1, math.max(0, units - redis.call('HLEN', KEYS[2])))
    redis.call('HSET', KEYS[1], 'stock', string.format('%.0f', stock))
  end
end

-- uneven is 1 if this bucket has units, or sends some, while buyers of another one
-- have none: who sends them may have died.
local function uneven()
  if not sold[3] then return 0 end
  if stock and stock > 0 then return 1 end
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if string.match(field, '^out:') then return 1 end
  end
  return 0
end

