-- Removes keys of a type that no script works with, and entries that nobody can read
-- and that are still as they were read. Returns how many that were.
-- KEYS: sale, buyers, marks, due, keys.  ARGV: 'marks' or 'buyers', name, text, and so on.
local dropped = 0
for i, want in ipairs({'hash', 'hash', 'hash', 'zset', 'hash'}) do
  local is = redis.call('TYPE', KEYS[i]).ok
  if is ~= want and is ~= 'none' then
    redis.call('DEL', KEYS[i])
    dropped = dropped + 1
  end
  -- The database knows the buyers: whoever loads the voucher has them restored.
  if is ~= want and is ~= 'none' and i == 2 then redis.call('HDEL', KEYS[1], 'stock') end
end
for i = 1, #ARGV, 3 do
  local name, text = ARGV[i + 1], ARGV[i + 2]
  if ARGV[i] == 'marks' then
    if redis.call('HGET', KEYS[3], name) == text then
      redis.call('HDEL', KEYS[3], name)
      redis.call('ZREM', KEYS[4], name)
      dropped = dropped + 1
    end
  elseif redis.call('HLEN', KEYS[3]) == 0 and redis.call('HGET', KEYS[2], name) == text then
    redis.call('HDEL', KEYS[2], name)
    dropped = dropped + 1
    -- As free in back.lua.
    local sold = redis.call('HMGET', KEYS[1], 'stock', 'units')
    local stock, units = tonumber(sold[1] or ''), tonumber(sold[2] or '')
    if stock and units then
      stock = math.min(stock + 1, math.max(0, units - redis.call('HLEN', KEYS[2])))
      redis.call('HSET', KEYS[1], 'stock', string.format('%.0f', stock))
    end
  end
end
return dropped
