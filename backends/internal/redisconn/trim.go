package redisconn

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// trimScript takes a stream, and removes the entries below the oldest that any
// group still needs: its oldest pending one, or else the last that it has read.
// Whole nodes only and a bounded number per call, so that nobody waits for it. Ids
// are compared as text, since a Lua number does not hold them.
var trimScript = redis.NewScript(`
local function less(a, b)
	local am, as = a:match('(%d+)-(%d+)')
	local bm, bs = b:match('(%d+)-(%d+)')
	if am == bm then am, bm = as, bs end
	if #am ~= #bm then return #am < #bm end
	return am < bm
end
local oldest
for _, g in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
	local f = {}
	for i = 1, #g, 2 do f[g[i]] = g[i + 1] end
	local need = f['last-delivered-id']
	if f['pending'] > 0 then
		local first = redis.call('XPENDING', KEYS[1], f['name'])[2]
		if less(first, need) then need = first end
	end
	if not oldest or less(need, oldest) then oldest = need end
end
if not oldest then return 0 end
return redis.call('XTRIM', KEYS[1], 'MINID', '~', oldest, 'LIMIT', 10000)`)

// Trim removes what every group of a stream has read and acked. An error is not
// reported: what is left is trimmed the next time.
func Trim(ctx context.Context, c *redis.Client, stream string) {
	for ctx.Err() == nil {
		n, err := trimScript.Run(ctx, c, []string{stream}).Int64()
		if err != nil || n == 0 {
			return
		}
	}
}
