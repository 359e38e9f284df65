package admission

import (
	"context"
	"fmt"
)

// Settings tells how the gate's Redis keeps its data: maxmemory-policy and
// appendonly, as its configuration names them. What it does not tell is absent.
func (g *Redis) Settings(ctx context.Context) (map[string]string, error) {
	info, err := g.client.Info(ctx).Result() // hosted ones refuse CONFIG
	if err != nil {
		return nil, fmt.Errorf("ask Redis for its settings: %w", err)
	}
	set := map[string]string{}
	if policy := infoField(info, "maxmemory_policy"); policy != "" {
		set["maxmemory-policy"] = policy
	}
	switch infoField(info, "aof_enabled") {
	case "0":
		set["appendonly"] = "no"
	case "1":
		set["appendonly"] = "yes"
	}
	return set, nil
}
