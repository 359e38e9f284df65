package redisconn

import (
	"strconv"
	"strings"
)

// Again is Lua: again(value) is the value as it stands in the queue once it has
// been given back. How often a message was delivered is written before it, as
// in "2:", so that it is where the message is and survives what the message does.
// No message begins with a digit.
const Again = `
local function again(v)
	local n, rest = v:match('^(%d+):(.*)$')
	if n then return string.format('%d:', n + 1) .. rest end
	return '2:' .. v
end
`

// AttemptOf splits what Again wrote from the message.
func AttemptOf(v string) (attempt int, message string) {
	if v != "" && v[0] >= '0' && v[0] <= '9' {
		digits, rest, ok := strings.Cut(v, ":")
		if n, err := strconv.Atoi(digits); ok && err == nil {
			return n, rest
		}
	}
	return 1, v
}
