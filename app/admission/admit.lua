-- Clicks on one voucher, each decided after those before it, in one atomic
-- step. Returns for each: code, order that holds the unit, which of the buyer's
-- units it is. Code 8 took nothing: the click should ask for that unit.
-- KEYS: sale, buyers, marks, due, keys, and the queue if there is a command.
-- ARGV: the command that puts a message into the queue, or ''; how many clicks;
-- for each click: user, order, the buyer's unit that it asks for, idempotency key
-- or '', body; with a command, for each click how many arguments it has, and these.
-- Ids are never made numbers: a double loses the last digits of 63 bits.
local ARGV, call = ARGV, redis.call
local command, count = ARGV[1], tonumber(ARGV[2])
local users, args, keyed = {}, {}, false
for i = 1, count do
  users[i] = ARGV[5 * i - 2]
  keyed = keyed or ARGV[5 * i + 1] ~= ''
end
if command ~= '' then
  local at = 5 * count + 3
  for i = 1, count do
    args[i] = at
    at = at + 1 + tonumber(ARGV[at])
  end
end

local sold = call('HMGET', KEYS[1], 'stock', 'begin', 'end', 'each', 'most')
local holders = call('HMGET', KEYS[2], unpack(users))
-- Reading every key before the first write: a key of the wrong type fails
-- here, where nothing was done yet. A script is isolated but never rolled back.
local waiting = call('HLEN', KEYS[3])
call('ZCARD', KEYS[4])
call('HLEN', KEYS[5])
-- A buyer's keys and the orders they got, ' KEY ORDER' each, the newest last.
local wishes = keyed and call('HMGET', KEYS[5], unpack(users)) or {}
local most_wishes = 16

local stock, opens, ends = tonumber(sold[1] or ''), tonumber(sold[2] or ''), tonumber(sold[3] or '')
local each, most = tonumber(sold[4] or '') or 1, tonumber(sold[5] or '') or 0
local t = call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
local from = string.format('%.0f', now)
local set = from .. '|'

local refused -- what all get who have nothing and want something
if not (stock and opens and ends) then
  refused, each = 6, 0
elseif now < opens then
  refused = 4
elseif now >= ends then
  refused = 5
end

local taken, held, wished = 0, {}, {} -- by this call
local marks, due, buyers, again = {}, {}, {}, {}
local answers = {}
for i = 1, count do
  local a = 5 * i - 2
  local user, order, key = users[i], ARGV[a + 1], ARGV[a + 3]
  local code, answer, unit = refused, '', 0
  local free, other
  if key ~= '' and refused ~= 6 then
    for k, had in string.gmatch(wished[user] or wishes[i] or '', ' (%S+) (%S+)') do
      if k == key and had ~= order then
        again[#again + 1] = had
        code, answer = 1, had
      end
    end
  end
  for n = 0, answer == '' and each - 1 or -1 do
    local field, holder = user
    if n == 0 then
      holder = held[user] or holders[i]
    else
      field = user .. '#' .. n
      holder = held[field] or call('HGET', KEYS[2], field)
    end
    if not holder then
      free = free or n
    elseif holder == order then
      code, answer, unit, free = 1, holder, n, nil
      break
    else
      other = other or holder
    end
  end
  if not code then
    if not free then
      code, answer = 2, other
    elseif stock <= taken then
      code = 3
    elseif most > 0 and waiting + taken >= most then
      code = 7
    elseif free ~= tonumber(ARGV[a + 2]) then
      code, unit = 8, free
    else
      -- The first write is one that Redis refuses when its memory is full or the key
      -- has the wrong type; once it went through, the rest does.
      if command ~= '' then
        local from = args[i]
        call(command, KEYS[6], unpack(ARGV, from + 1, from + tonumber(ARGV[from])))
      end
      local field = user
      if free > 0 then field = user .. '#' .. free end
      taken = taken + 1
      held[field] = order
      local at = 2 * taken
      buyers[at - 1], buyers[at] = field, order
      marks[at - 1], marks[at] = order, set .. ARGV[a + 4]
      due[at - 1], due[at] = from, order
      if key ~= '' then
        local list = {}
        for k, had in string.gmatch(wished[user] or wishes[i] or '', ' (%S+) (%S+)') do
          if k ~= key then list[#list + 1] = ' ' .. k .. ' ' .. had end
        end
        if #list >= most_wishes then table.remove(list, 1) end
        wished[user] = table.concat(list) .. ' ' .. key .. ' ' .. order
      end
      code, answer, unit = 1, order, free
    end
  end
  local at = 3 * i
  answers[at - 2], answers[at - 1], answers[at] = code, answer, unit
end

if taken > 0 then
  call('HSET', KEYS[3], unpack(marks))
  call('ZADD', KEYS[4], unpack(due))
  call('HSET', KEYS[2], unpack(buyers))
  for user, list in pairs(wished) do call('HSET', KEYS[5], user, list) end
  call('HINCRBY', KEYS[1], 'stock', -taken)
end
-- Somebody else counts on these orders now, so withdraw.lua keeps them, as the
-- index says another time than the mark.
for _, order in ipairs(again) do
  if call('ZSCORE', KEYS[4], order) then call('ZINCRBY', KEYS[4], 1, order) end
end
return answers
