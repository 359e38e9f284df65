package admission

import "github.com/redis/go-redis/v9"

// Client is the gate's connection, for what else is kept beside its keys. It
// ends with the gate.
func (g *Redis) Client() redis.UniversalClient { return g.client }
