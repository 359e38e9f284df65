package redisstreams

import "github.com/redis/go-redis/v9"

// released is the consumer that owns what was given back. Its entries look as if
// they had been idle for longer than any claim, so that the next one takes them.
const released = "released"

// All scripts take the keys stream, hints, leases, and the arguments group and
// consumer first. Run sends a script again after SCRIPT FLUSH or a restart.

// head names the arguments. owned is for the scripts that settle; it is apart
// from the rest since every call pays for each function that it defines.
const (
	head = `
local stream, hints, leases = KEYS[1], KEYS[2], KEYS[3]
local group, me = ARGV[1], ARGV[2]
`
	// owned returns, for the arguments from the nth on, which are ids, whose each
	// is (0: not pending, 1: mine, 2: another's), and those that are mine. Ids that
	// are settled together mostly were read together: one look finds them all, and
	// only what it does not find is looked up one by one.
	owned = `
local function owned(n)
	local codes, mine, found = {}, {}, {}
	if n > #ARGV then return codes, mine end
	for _, p in ipairs(redis.call('XPENDING', stream, group, ARGV[n], ARGV[#ARGV], #ARGV - n + 1, me)) do
		found[p[1]] = true
	end
	for i = n, #ARGV do
		local id, code = ARGV[i], 0
		if found[id] then
			code = 1
		else
			local p = redis.call('XPENDING', stream, group, id, id, 1)
			if #p > 0 then code = p[1][2] == me and 1 or 2 end
		end
		if code == 1 then mine[#mine + 1] = id end
		codes[#codes + 1] = code
	end
	return codes, mine
end
`
	giveBack = `
local function give_back(ids)
	if #ids == 0 then return end
	local args = {'XCLAIM', stream, group, '` + released + `', 0}
	for _, id in ipairs(ids) do args[#args + 1] = id end
	-- FORCE is for what was read without acks and is not pending
	for _, o in ipairs({'IDLE', 86400000, 'FORCE', 'JUSTID'}) do args[#args + 1] = o end
	redis.call(unpack(args))
	for _ = 1, math.min(#ids, 100) do
		redis.call('XADD', hints, 'MAXLEN', '~', 1000, '*', 'n', 1)
	end
end

`
	forget = `
local function forget(name)
	redis.call('XGROUP', 'DELCONSUMER', stream, group, name)
	redis.pcall('XGROUP', 'DELCONSUMER', hints, group, name) -- the hints may be gone
	redis.call('ZREM', leases, name)
end

`
	// counted returns entries as {id, count, fields}; the counts are read after a
	// claim has raised them.
	counted = `
local function counted(entries)
	local out = {}
	for _, e in ipairs(entries) do
		if e and e[2] then
			local p = redis.call('XPENDING', stream, group, e[1], e[1], 1)
			if #p == 1 then out[#out + 1] = {e[1], p[1][4], e[2]} end
		end
	end
	return out
end
`
)

var (
	// ack: ids. Returns the owner of each before the ack.
	ackScript = redis.NewScript(head + owned + `
local codes, mine = owned(3)
if #mine > 0 then redis.call('XACK', stream, group, unpack(mine)) end
return codes`)

	// nack: ids. Returns the owner of each before it was given back.
	nackScript = redis.NewScript(head + owned + giveBack + `
local codes, mine = owned(3)
give_back(mine)
return codes`)

	// unread: ids, of entries that the consumer read without acks and nobody got.
	unreadScript = redis.NewScript(head + giveBack + `
give_back({unpack(ARGV, 3)})`)

	// extend: lease in ms, ids. Renews the consumer's name and the leases of the
	// entries that are still its own, without counting a delivery.
	extendScript = redis.NewScript(head + owned + `
local t = redis.call('TIME')
redis.call('ZADD', leases, t[1] * 1000 + math.floor(t[2] / 1000) + tonumber(ARGV[3]), me)
local codes, mine = owned(4)
if #mine > 0 then
	local args = {'XCLAIM', stream, group, me, 0}
	for _, id in ipairs(mine) do args[#args + 1] = id end
	args[#args + 1] = 'JUSTID'
	redis.call(unpack(args))
end
return codes`)

	// claim: min-idle in ms, cursor, count. Takes over what nobody holds any more.
	// Returns the next cursor, the entries, and how many had lost their bodies.
	claimScript = redis.NewScript(head + counted + `
local r = redis.call('XAUTOCLAIM', stream, group, me, ARGV[3], ARGV[4], 'COUNT', ARGV[5])
return {r[1], counted(r[2]), #r[3]}`)

	// take: count, ids of hints. Takes what was given back, and removes the hints.
	// Returns the entries and how many had lost their bodies.
	takeScript = redis.NewScript(head + counted + `
if #ARGV > 3 then
	redis.call('XACK', hints, group, unpack(ARGV, 4))
	redis.call('XDEL', hints, unpack(ARGV, 4))
end
local p = redis.call('XPENDING', stream, group, '-', '+', ARGV[3], '` + released + `')
if #p == 0 then return {'0-0', {}, 0} end
local args = {'XCLAIM', stream, group, me, 0}
for _, e in ipairs(p) do args[#args + 1] = e[1] end
local entries = counted(redis.call(unpack(args)))
return {p[#p][1], entries, #p - #entries}`)

	// own: start, count. Reads what is pending under the consumer's own name,
	// without counting a delivery: its reply was lost. Returns the last id and the
	// entries, those without a body as {id, count}.
	ownScript = redis.NewScript(head + `
local p = redis.call('XPENDING', stream, group, ARGV[3], '+', ARGV[4], me)
local out = {}
for _, e in ipairs(p) do
	local r = redis.call('XRANGE', stream, e[1], e[1])
	out[#out + 1] = {e[1], e[4], r[1] and r[1][2]}
end
return {#p > 0 and p[#p][1] or '0-0', out, 0}`)

	// leave: gives back all that is pending under the consumer's name, and deletes
	// the name, in one step. Returns how many were given back.
	leaveScript = redis.NewScript(head + giveBack + forget + `
local n = 0
while true do
	local p = redis.call('XPENDING', stream, group, '-', '+', 1000, me)
	if #p == 0 then break end
	local ids = {}
	for _, e in ipairs(p) do ids[#ids + 1] = e[1] end
	give_back(ids)
	n = n + #ids
end
forget(me)
return n`)

	// bury: deletes the names whose leases have run out and under which nothing is
	// pending. DELCONSUMER destroys a pending list, so both are one step.
	buryScript = redis.NewScript(head + forget + `
local t = redis.call('TIME')
local n = 0
for _, name in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', t[1] * 1000 + math.floor(t[2] / 1000))) do
	if #redis.call('XPENDING', stream, group, '-', '+', 1, name) == 0 then
		forget(name)
		n = n + 1
	end
end
return n`)
)
