package door

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/app/loop"
)

const (
	// knownEach is how many addresses of an account are remembered, the latest, and
	// knownFor how long at most.
	knownEach = 16
	knownFor  = 30 * 24 * time.Hour
	// maxKnown is half of the accounts that LocalKnown remembers.
	maxKnown = 1 << 15
)

// Known remembers from where accounts logged in: whoever uses up the tries of
// somebody's name must not keep out its owner. It is safe for concurrent use.
type Known interface {
	// Add notes an address from which an account has just logged in.
	Add(ctx context.Context, user, address string)
	// Has reports whether it did before. What is forgotten, or not to be found out
	// just now, is not known.
	Has(ctx context.Context, user, address string) bool
}

// LocalKnown is for one instance, and forgets with it. Of the accounts it
// remembers some tens of thousands, those that logged in last.
type LocalKnown struct {
	mu          sync.Mutex
	young, aged map[string][]string // an account's addresses, the latest last
}

// Add implements Known.
func (k *LocalKnown) Add(_ context.Context, user, address string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	of := slices.DeleteFunc(slices.Clone(k.of(user)), func(a string) bool { return a == address })
	if len(of) >= knownEach {
		of = of[1:]
	}
	if k.young == nil || len(k.young) >= maxKnown {
		k.aged, k.young = k.young, map[string][]string{}
	}
	k.young[user] = append(of, address)
}

// Has implements Known.
func (k *LocalKnown) Has(_ context.Context, user, address string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Contains(k.of(user), address)
}

func (k *LocalKnown) of(user string) []string {
	if of, ok := k.young[user]; ok {
		return of
	}
	return k.aged[user]
}

// SharedKnown is for all instances over the same Redis. While that does not answer
// each knows what it has seen itself.
type SharedKnown struct {
	Client redis.UniversalClient
	Log    *slog.Logger

	local  LocalKnown
	warned loop.Seldom
}

func knownKey(user string) string { return "seckill:known:{" + user + "}" }

// Add implements Known.
func (k *SharedKnown) Add(ctx context.Context, user, address string) {
	k.local.Add(ctx, user, address)
	ctx, cancel := context.WithTimeout(ctx, sharedTimeout)
	defer cancel()
	_, err := k.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ZAdd(ctx, knownKey(user), redis.Z{Score: float64(time.Now().UnixMicro()), Member: address})
		p.ZRemRangeByRank(ctx, knownKey(user), 0, -knownEach-1)
		p.Expire(ctx, knownKey(user), knownFor)
		return nil
	})
	if err != nil && k.warned.Now() {
		k.Log.Warn("from where an account logged in is known to this instance alone", "error", err)
	}
}

// Has implements Known.
func (k *SharedKnown) Has(ctx context.Context, user, address string) bool {
	if k.local.Has(ctx, user, address) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, sharedTimeout)
	defer cancel()
	_, err := k.Client.ZScore(ctx, knownKey(user), address).Result()
	return err == nil
}
