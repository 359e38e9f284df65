package admission

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/app/sale"
)

// lockFor is when a lock ends by itself. It is longer than any request, so that
// this happens only to those of a process that died.
const lockFor = 10 * time.Second

// unlock deletes a lock only while it is its owner's: after it ended by itself,
// somebody else may have it.
// KEYS: lock.  ARGV: the owner's token.
const unlockSource = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

// RedisLock is a lock that all instances share: seckill:lock:{NAME}, which holds
// its owner's token until it is given back or ends.
type RedisLock struct {
	client redis.UniversalClient
	unlock *redis.Script
}

// Locks returns locks in the gate's Redis. They end with the gate.
func (g *Redis) Locks() *RedisLock {
	return &RedisLock{client: g.client, unlock: redis.NewScript(unlockSource)}
}

// TryLock implements sale.UserLock.
func (l *RedisLock) TryLock(ctx context.Context, name string) (unlock func(), ok bool, err error) {
	key, token := "seckill:lock:{"+name+"}", rand.Text()
	ok, err = l.client.SetNX(ctx, key, token, lockFor).Result()
	if err != nil {
		// It may be ours by now; then it ends by itself.
		return nil, false, fmt.Errorf("take the lock %s: %w", name, err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = l.unlock.Run(ctx, l.client, []string{key}, token).Err() // else it ends by itself
	}, ok, nil
}

// MemoryLock is a lock in this process, for one instance. It ends with it, and
// not by itself. The zero value is ready.
type MemoryLock struct {
	mu    sync.Mutex
	taken map[string]bool
}

// TryLock implements sale.UserLock.
func (l *MemoryLock) TryLock(_ context.Context, name string) (unlock func(), ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken[name] {
		return nil, false, nil
	}
	if l.taken == nil {
		l.taken = map[string]bool{}
	}
	l.taken[name] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.taken, name)
	}, true, nil
}

var _, _ sale.UserLock = (*RedisLock)(nil), (*MemoryLock)(nil)
