package fault

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// KeyDelete deletes the queue itself with a frozen backlog in it, by a command
// of the broker, as a mistyped name or a careless clean-up does: the key of
// Redis, the queue of RabbitMQ, the topic of Kafka. The backlog is gone, and
// what comes later must not be.
func KeyDelete() Fault {
	return Fault{
		Name:    "key-delete",
		Summary: "the list, stream, queue or topic is deleted with a frozen backlog in it",
		Trials:  3,
		Means: func(t Target) string {
			switch {
			case t.Broker != "redis" && t.Broker != "rabbitmq" && t.Broker != "kafka":
				return "there is no such command"
			case !t.Caps.Stored:
				return "nothing is stored"
			}
			return ""
		},
		Run: func(ctx context.Context, s Scene) error {
			if err := frozenBacklog(ctx, s); err != nil {
				return err
			}
			s.Asked()
			var err error
			switch s.Target().Broker {
			case "redis":
				err = onRedis(s, func(c *redis.Client, queue string) error { return deleteKeys(ctx, s, c, queue) })
			case "rabbitmq":
				_, err = deleteQueue(s)
			default: // a topic is gone only some time after the command
				err = s.Queue().Delete(ctx)
			}
			if err != nil {
				return err
			}
			s.Confirmed()
			return readBack(ctx, s)
		},
	}
}

func deleteKeys(ctx context.Context, s Scene, c *redis.Client, queue string) error {
	keys, err := keysOf(ctx, c, queue)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		s.Invalid("no key bears the name of queue %s", queue)
		return nil
	}
	if err := c.Del(ctx, keys...).Err(); err != nil {
		return fmt.Errorf("delete the queue's keys: %w", err)
	}
	s.Note("deleted %d keys", len(keys))
	return nil
}
