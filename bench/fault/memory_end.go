package fault

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// memoryLeft is what Redis may still take when its memory begins to end: less
// than the rest of the load.
const memoryLeft = 16 << 10

// MemoryEnd lets a queue grow to the limit that somebody set: Redis reaches its
// maxmemory under load, and the policy is to evict nothing. What it refuses is
// certainly refused, and what it took stays. OutOfMemory is without such a limit.
func MemoryEnd() Fault {
	return Fault{
		Name:    "memory-end",
		Summary: "Redis reaches its maxmemory under load with no consumer, and evicts nothing",
		Trials:  3,
		// A Redis that was given has other users.
		OwnBroker: true,
		Means:     isRedisStore,
		Run: func(ctx context.Context, s Scene) error {
			if err := s.Settle(ctx); err != nil {
				return err
			}
			n := s.Target().Messages
			first, err := load(ctx, s, Role{Producer: &Producer{Count: n / 2}})
			if err != nil {
				return err
			}
			if err := first.Produced(ctx); err != nil {
				return err
			}
			rest, err := s.Start(ctx, Role{Producer: &Producer{Count: n - n/2}})
			if err != nil {
				return err
			}
			return onRedis(s, func(c *redis.Client, _ string) error {
				heal, err := endMemory(ctx, s, c)
				if err != nil {
					return err
				}
				defer heal() // the second time, after an error
				s.Asked()
				if err := rest.Produce(); err != nil {
					return err
				}
				if err := rest.Produced(ctx); err != nil {
					return err
				}
				held, err := s.Freeze(ctx)
				if err != nil {
					return err
				}
				s.Confirmed()
				if held >= int64(n) {
					s.Invalid("Redis took all %d messages: its memory did not end", n)
				}
				s.Facts().Over += int64(n) - held
				s.Note("Redis took %d of %d messages", held, n)
				if err := heal(); err != nil {
					return err
				}
				return readBack(ctx, s)
			})
		},
	}
}

// endMemory leaves Redis little more memory than it uses. heal gives back what it
// had; it may be called again.
func endMemory(ctx context.Context, s Scene, c *redis.Client) (heal func() error, err error) {
	before, err := c.ConfigGet(ctx, "maxmemory*").Result()
	if err != nil {
		return nil, fmt.Errorf("ask for maxmemory: %w", err)
	}
	if p := before["maxmemory-policy"]; p != "noeviction" {
		s.Invalid("maxmemory-policy is %s: Redis would make room by itself", p)
	}
	used, err := usedMemory(ctx, c)
	if err != nil {
		return nil, err
	}
	heal = func() error {
		return undo(ctx, func(ctx context.Context) error {
			if err := c.ConfigSet(ctx, "maxmemory", before["maxmemory"]).Err(); err != nil {
				return fmt.Errorf("set maxmemory back to %s: %w", before["maxmemory"], err)
			}
			return nil
		})
	}
	if err := c.ConfigSet(ctx, "maxmemory", strconv.FormatInt(used+memoryLeft, 10)).Err(); err != nil {
		return nil, fmt.Errorf("set maxmemory: %w", err)
	}
	return heal, nil
}

func usedMemory(ctx context.Context, c *redis.Client) (int64, error) {
	info, err := c.Info(ctx, "memory").Result()
	if err != nil {
		return 0, fmt.Errorf("ask for the memory in use: %w", err)
	}
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, "used_memory:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("the memory in use: %w", err)
			}
			return n, nil
		}
	}
	return 0, errors.New("the broker does not tell the memory in use")
}
