-- Clicks on one voucher, each decided after those before it, in one atomic
-- step. Returns for each: code, order that holds the unit, which of the buyer's
-- units it is. Code 8 took nothing: the click should ask for that unit.
-- KEYS: sale, buyers, marks, due, keys, and the queue if there is a command.
-- ARGV: the command that puts a message into the queue, or '', and then for each
-- click: user, order, the buyer's unit that it asks for, idempotency key or '',
-- body, and with a command how many arguments it has, and these.
-- Ids are never made numbers: a double loses the last digits of 63 bits.
local command = ARGV[1]
local clicks, users = {}, {}
local at = 2
while at <= #ARGV do
  local click = {at = at, args = 0}
  clicks[#clicks + 1] = click
  users[#users + 1] = ARGV[at]
  at = at + 5
  if command ~= '' then
    click.args = tonumber(ARGV[at])
    at = at + 1 + click.args
  end
end

local sold = redis.call('HMGET', KEYS[1], 'stock', 'begin', 'end', 'each', 'most')
local first = redis.call('HMGET', KEYS[2], unpack(users))
-- Reading every key before the first write: a key of the wrong type fails
-- here, where nothing was done yet. A script is isolated but never rolled back.
local waiting = redis.call('HLEN', KEYS[3])
redis.call('ZCARD', KEYS[4])
redis.call('HLEN', KEYS[5])

local stock, opens, ends = tonumber(sold[1] or ''), tonumber(sold[2] or ''), tonumber(sold[3] or '')
local each, most = tonumber(sold[4] or '') or 1, tonumber(sold[5] or '') or 0
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
local from = string.format('%.0f', now)

local taken, held, known, due = 0, {}, {}, {} -- by this call
local marks, buyers, keys, again = {}, {}, {}, {}

local function decide(i, click)
  if not (stock and opens and ends) then return 6, '', 0 end
  local user, order, unit, key = ARGV[click.at], ARGV[click.at + 1], tonumber(ARGV[click.at + 2]), ARGV[click.at + 3]
  local free, other
  for n = 0, each - 1 do
    local field = n == 0 and user or user .. '#' .. n
    local holder = held[field] or n == 0 and first[i]
    if n > 0 and not holder then holder = redis.call('HGET', KEYS[2], field) end
    if not holder then
      free = free or n
    elseif holder == order then
      return 1, holder, n
    elseif key ~= '' and (known[holder] or redis.call('HGET', KEYS[5], holder)) == key then
      again[#again + 1] = holder
      return 1, holder, n
    else
      other = other or holder
    end
  end
  if now < opens then return 4, '', 0 end
  if now >= ends then return 5, '', 0 end
  if not free then return 2, other, 0 end
  if stock <= taken then return 3, '', 0 end
  if most > 0 and waiting + taken >= most then return 7, '', 0 end
  if free ~= unit then return 8, '', free end

  -- The first write is one that Redis refuses when its memory is full or the key
  -- has the wrong type; once it went through, the rest does.
  if command ~= '' then redis.call(command, KEYS[6], unpack(ARGV, click.at + 6, click.at + 5 + click.args)) end
  local field = free == 0 and user or user .. '#' .. free
  taken = taken + 1
  held[field] = order
  buyers[#buyers + 1], buyers[#buyers + 2] = field, order
  marks[#marks + 1], marks[#marks + 2] = order, from .. '|' .. ARGV[click.at + 4]
  due[#due + 1], due[#due + 2] = from, order
  if key ~= '' then
    known[order] = key
    keys[#keys + 1], keys[#keys + 2] = order, key
  end
  return 1, order, free
end

local answers = {}
for i, click in ipairs(clicks) do
  answers[3 * i - 2], answers[3 * i - 1], answers[3 * i] = decide(i, click)
end
if taken > 0 then
  redis.call('HSET', KEYS[3], unpack(marks))
  redis.call('ZADD', KEYS[4], unpack(due))
  redis.call('HSET', KEYS[2], unpack(buyers))
  if #keys > 0 then redis.call('HSET', KEYS[5], unpack(keys)) end
  redis.call('HINCRBY', KEYS[1], 'stock', -taken)
end
-- Somebody else counts on these orders now, so withdraw.lua keeps them, as the
-- index says another time than the mark.
for _, order in ipairs(again) do
  if redis.call('ZSCORE', KEYS[4], order) then redis.call('ZINCRBY', KEYS[4], 1, order) end
end
return answers
