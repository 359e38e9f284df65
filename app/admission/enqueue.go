package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"queuelab/queue"
)

// ErrElsewhere: the queue is not where the gate is, so no script reaches both.
var ErrElsewhere = errors.New("the queue is not in the Redis and database that admission uses")

// EnqueueInto has the admission script put the order's message into a queue, so
// that between taking a unit and queueing its order nothing can happen. It is to
// be called before the first click. All instances of a cluster must agree on it:
// there it decides the names of the keys.
//
// It is ErrElsewhere, and changes nothing, if the queue is on another server.
func (g *Redis) EnqueueInto(ctx context.Context, how *queue.ScriptEnqueue) error {
	node, err := g.node(ctx, how.Key)
	if err != nil {
		return fmt.Errorf("find the Redis of the queue: %w", err)
	}
	info, err := node.Info(ctx, "server").Result()
	if err != nil {
		return fmt.Errorf("ask the Redis of admission its name: %w", err)
	}
	if server := fmt.Sprintf("%s/%d", infoField(info, "run_id"), node.Options().DB); server != how.Server {
		return fmt.Errorf("%w: %s and %s", ErrElsewhere, how.Server, server)
	}
	if infoField(info, "redis_mode") == "cluster" {
		g.tag = hashTag(how.Key)
	}
	g.enqueue = how
	return nil
}

func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), ":"); key == name {
			return value
		}
	}
	return ""
}

// hashTag is the part of a key that decides its slot in a cluster.
func hashTag(key string) string {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}
