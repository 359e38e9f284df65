package door

import (
	"context"
	_ "embed"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/app/loop"
)

//go:embed limit.lua
var limitSource string

// sharedTimeout is how long Redis may think about a limit.
const sharedTimeout = 250 * time.Millisecond

// Shared is one limit for all instances over the same Redis. A key that is over
// the limit at this instance alone costs no round trip. While Redis does not
// answer each instance limits by itself, since a limit must not end the sale.
type Shared struct {
	local  *Local
	client redis.UniversalClient
	script *redis.Script
	prefix string
	log    *slog.Logger
	warned loop.Seldom
}

// NewShared makes a limiter; limits of different names do not meet.
func NewShared(local *Local, client redis.UniversalClient, name string, log *slog.Logger) *Shared {
	return &Shared{local: local, client: client, script: redis.NewScript(limitSource), prefix: "seckill:limit:" + name + ":", log: log}
}

// Take implements Limiter.
func (s *Shared) Take(ctx context.Context, key string) time.Duration {
	if s.local.rate.N == 0 {
		return 0
	}
	if wait := s.local.Take(ctx, key); wait > 0 {
		return wait
	}
	ctx, cancel := context.WithTimeout(ctx, sharedTimeout)
	defer cancel()
	step := s.local.rate.step()
	us, err := s.script.Run(ctx, s.client, []string{s.prefix + "{" + key + "}"},
		step.Microseconds(), (time.Duration(s.local.rate.N) * step).Microseconds()).Int64()
	if err != nil {
		if s.warned.Now() {
			s.log.Warn("this instance limits by itself", "error", err)
		}
		return 0
	}
	return time.Duration(us) * time.Microsecond
}
