package admission

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Settings tells how the gate's Redis keeps its data: maxmemory-policy and
// appendonly, as its configuration names them. What it does not tell is absent. Of
// a cluster it is what the worst of its nodes tells.
func (g *Redis) Settings(ctx context.Context) (map[string]string, error) {
	set := map[string]string{}
	var mu sync.Mutex
	err := g.nodes(ctx, func(ctx context.Context, node *redis.Client) error {
		info, err := node.Info(ctx).Result() // hosted ones refuse CONFIG
		if err != nil {
			return err
		}
		fsync, err := node.ConfigGet(ctx, "appendfsync").Result()
		if err != nil && ctx.Err() != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if how := fsync["appendfsync"]; how != "" && (set["appendfsync"] == "" || how == "no") {
			set["appendfsync"] = how
		}
		if policy := infoField(info, "maxmemory_policy"); policy != "" && (set["maxmemory-policy"] == "" || policy != "noeviction") {
			set["maxmemory-policy"] = policy
		}
		switch infoField(info, "aof_enabled") {
		case "0":
			set["appendonly"] = "no"
		case "1":
			if set["appendonly"] == "" {
				set["appendonly"] = "yes"
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask Redis for its settings: %w", err)
	}
	return set, nil
}
