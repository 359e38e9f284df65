-- KEYS: one. ARGV: what one request takes up, and how much may be ahead, in µs.
-- Answers 0, or the µs until a request would be let in.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local due = tonumber(redis.call('GET', KEYS[1]) or now) or now
local most = tonumber(ARGV[2])
-- Behind: its time is over. Far ahead: Redis' clock was set back.
if due < now or due > now + most then due = now end
due = due + ARGV[1]
local wait = due - now - most
if wait > 0 then return wait end
redis.call('SET', KEYS[1], string.format('%.0f', due), 'PX', math.ceil((due - now) / 1000) + 1)
return 0
