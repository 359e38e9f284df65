-- Has a loaded voucher take clicks from a moment on, or from now on where Redis'
-- clock has not come to it. Returns 1 if that is earlier than it was.
-- KEYS: sale.  ARGV: moment in ms.
local opens = tonumber(redis.call('HGET', KEYS[1], 'begin') or '')
local t = redis.call('TIME')
local at = math.min(tonumber(ARGV[1]), tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000))
if not opens or opens <= at then return 0 end
redis.call('HSET', KEYS[1], 'begin', string.format('%.0f', at))
return 1
