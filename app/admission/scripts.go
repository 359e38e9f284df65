package admission

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed admit.lua
	admitSource string
	//go:embed back.lua
	backSource string
	//go:embed release.lua
	releaseSource string
	//go:embed settle.lua
	settleSource string
	//go:embed withdraw.lua
	withdrawSource string
	//go:embed stale.lua
	staleSource string
	//go:embed load.lua
	loadSource string
	//go:embed start.lua
	startSource string
	//go:embed look.lua
	lookSource string
	//go:embed level.lua
	levelSource string
	//go:embed index.lua
	indexSource string
	//go:embed drop.lua
	dropSource string

	// Those of vouchers with several buckets.

	//go:embed take.lua
	takeSource string
	//go:embed accept.lua
	acceptSource string
	//go:embed forget.lua
	forgetSource string
	//go:embed begin.lua
	beginSource string
	//go:embed close.lua
	closeSource string
	//go:embed shares.lua
	sharesSource string
	//go:embed resize.lua
	resizeSource string
)

// scripts are all that the gate runs.
type scripts struct {
	admit, release, settle, withdraw, stale, load, start, look, level, index, drop *redis.Script
	take, accept, forget, begin, shut, shares, resize                              *redis.Script
}

func newScripts() scripts {
	return scripts{
		admit: redis.NewScript(admitSource), release: redis.NewScript(backSource + releaseSource), settle: redis.NewScript(settleSource),
		withdraw: redis.NewScript(backSource + withdrawSource), stale: redis.NewScript(staleSource), load: redis.NewScript(loadSource),
		start: redis.NewScript(startSource), look: redis.NewScript(lookSource), level: redis.NewScript(levelSource), index: redis.NewScript(indexSource),
		drop: redis.NewScript(dropSource), resize: redis.NewScript(resizeSource),
		take: redis.NewScript(takeSource), accept: redis.NewScript(acceptSource), forget: redis.NewScript(forgetSource),
		begin: redis.NewScript(beginSource), shut: redis.NewScript(closeSource), shares: redis.NewScript(sharesSource),
	}
}
