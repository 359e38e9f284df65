package redisstreams

import (
	"context"
	"maps"
	"slices"
	"time"

	"queuelab/backends/internal/redisconn"
)

// keep extends the leases of the consumer's name and of what it holds, three
// times per lease and at least every ten seconds, removes the names of the dead,
// and trims. An error is not reported: the next round tries again, and a lease
// that was lost shows when it is settled.
func (c *consumer) keep(ctx context.Context) {
	tick := time.NewTicker(min(c.q.claim/3, 10*time.Second))
	defer tick.Stop()
	buried, trimmed := time.Now(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_ = c.extend(ctx)
		if now := time.Now(); now.Sub(buried) >= c.q.claim/2 {
			buried = now
			_ = buryScript.Run(ctx, c.client, c.q.keys(), c.q.group, c.name).Err()
		}
		if now := time.Now(); c.q.trim > 0 && now.Sub(trimmed) >= c.q.trim {
			trimmed = now
			redisconn.Trim(ctx, c.client, c.q.stream)
		}
	}
}

func (c *consumer) extend(ctx context.Context) error {
	c.mu.Lock()
	held := slices.Collect(maps.Values(c.hand))
	c.mu.Unlock()
	for {
		n := min(len(held), scriptIDs)
		args := make([]any, 0, n+3)
		args = append(args, c.q.group, c.name, c.q.claim.Milliseconds())
		for _, e := range held[:n] {
			args = append(args, e.id)
		}
		owners, err := extendScript.Run(ctx, c.client, c.q.keys(), args...).Int64Slice()
		if err != nil {
			return err
		}
		c.mu.Lock()
		for i, owner := range owners[:min(n, len(owners))] {
			// One that is not pending may just have been acked.
			if owner == others {
				held[i].lost = true
				c.drop(held[i])
			}
		}
		c.mu.Unlock()
		if held = held[n:]; len(held) == 0 {
			return nil
		}
	}
}
