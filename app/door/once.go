package door

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Once knows which tickets were used. It is safe for concurrent use.
type Once interface {
	// First reports whether this is the first time that anybody asks for the
	// nonce. It is remembered for ttl. ErrBusy says that it cannot be known now.
	First(ctx context.Context, nonce string, ttl time.Duration) (bool, error)
}

// maxUsed bounds the nonces that one process remembers.
const maxUsed = 1 << 17

// LocalOnce is for a service of one instance.
type LocalOnce struct {
	mu    sync.Mutex
	until map[string]time.Time
	swept time.Time
}

// First implements Once.
func (o *LocalOnce) First(_ context.Context, nonce string, ttl time.Duration) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if o.until == nil {
		o.until = map[string]time.Time{}
	}
	if now.Sub(o.swept) > time.Second {
		o.swept = now
		for n, until := range o.until {
			if !now.Before(until) {
				delete(o.until, n)
			}
		}
	}
	if _, used := o.until[nonce]; used {
		return false, nil
	}
	if len(o.until) >= maxUsed {
		return false, fmt.Errorf("remember a used ticket: %w", ErrBusy)
	}
	o.until[nonce] = now.Add(ttl)
	return true, nil
}

// SharedOnce is for instances over the same Redis.
type SharedOnce struct{ Client redis.UniversalClient }

// First implements Once.
func (o *SharedOnce) First(ctx context.Context, nonce string, ttl time.Duration) (bool, error) {
	first, err := o.Client.SetNX(ctx, "seckill:once:{"+nonce+"}", 1, max(ttl, time.Millisecond)).Result()
	if err != nil {
		return false, fmt.Errorf("remember a used ticket: %w: %w", ErrBusy, err)
	}
	return first, nil
}
