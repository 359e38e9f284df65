-- Hands out a block of ids. Returns the millisecond and the first number in it.
-- KEYS: ids.  ARGV: how many, most in a millisecond, millisecond of the last
-- block that the caller got.
local last = redis.call('HMGET', KEYS[1], 'ms', 'next')
local ms, first = tonumber(last[1] or '') or 0, tonumber(last[2] or '') or 0
local count, most, known = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
-- A counter that was lost begins again, but not where it was already.
if ms < known then ms, first = known, most end
if now > ms then ms, first = now, 0 end
if first + count > most then ms, first = ms + 1, 0 end
redis.call('HSET', KEYS[1], 'ms', string.format('%.0f', ms), 'next', string.format('%.0f', first + count))
return {string.format('%.0f', ms), string.format('%.0f', first)}
