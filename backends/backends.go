// Package backends is the one table from a URL scheme to the package that
// opens it. A new queue is one package and one line here.
package backends

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"queuelab/backends/kafka"
	"queuelab/backends/memory"
	"queuelab/backends/nats"
	"queuelab/backends/postgres"
	"queuelab/backends/rabbitmq"
	"queuelab/backends/redisbell"
	"queuelab/backends/redisdoing"
	"queuelab/backends/redislist"
	"queuelab/backends/redislistreliable"
	"queuelab/backends/redispoll"
	"queuelab/backends/redispriority"
	"queuelab/backends/redispubsub"
	"queuelab/backends/redissharded"
	"queuelab/backends/redisstreams"
	"queuelab/backends/redisxread"
	"queuelab/backends/rediszset"
	"queuelab/queue"
)

// Backend is one row of the table.
type Backend struct {
	Name       string // as in results and after --queue
	Scheme     string
	DefaultURL string
	Summary    string // one line for people
	Broker     string // what it needs, as queuelab starts it: redis, rabbitmq, kafka, postgres, nats; empty: nothing
	// Lease is the URL's parameter for how long a consumer that is silent keeps its
	// deliveries; empty where that is not by time.
	Lease string
	Open  func(ctx context.Context, u *url.URL) (queue.Queue, error)
}

// All lists every backend, in the order in which tables show them.
func All() []Backend {
	return []Backend{
		{"memory", "memory", "memory://orders?capacity=1024", "a bounded channel in this process", "", "", memory.Open},
		{"redis-list", "redis+list", "redis+list://127.0.0.1:6379/0?queue=orders", "Redis List, LPUSH and BRPOP", "redis", "", redislist.Open},
		{"redis-pubsub", "redis+pubsub", "redis+pubsub://127.0.0.1:6379/0?queue=orders", "Redis Pub/Sub, broadcast", "redis", "", redispubsub.Open},
		{"redis-streams", "redis+streams", "redis+streams://127.0.0.1:6379/0?queue=orders", "Redis Streams with a consumer group", "redis", "claim", redisstreams.Open},
		{"redis-list-reliable", "redis+list-reliable", "redis+list-reliable://127.0.0.1:6379/0?queue=orders", "Redis List, BLMOVE to a processing list, and a reaper", "redis", "claim", redislistreliable.Open},
		{"redis-poll", "redis+poll", "redis+poll://127.0.0.1:6379/0?queue=orders", "Redis List, RPOP in a loop", "redis", "", redispoll.Open},
		{"redis-priority", "redis+priority", "redis+priority://127.0.0.1:6379/0?queue=orders", "Redis Lists by priority, one BRPOP over all", "redis", "", redispriority.Open},
		{"redis-doing", "redis+doing", "redis+doing://127.0.0.1:6379/0?queue=orders", "Redis List and the tutorials' doing hash", "redis", "claim", redisdoing.Open},
		{"redis-zset", "redis+zset", "redis+zset://127.0.0.1:6379/0?queue=orders", "Redis Sorted Set by due time", "redis", "claim", rediszset.Open},
		{"redis-xread", "redis+xread", "redis+xread://127.0.0.1:6379/0?queue=orders", "Redis Stream, XREAD without a group, broadcast", "redis", "", redisxread.Open},
		{"redis-sharded", "redis+sharded", "redis+sharded://127.0.0.1:6379/0?queue=orders", "Redis Streams partitioned by key, a lease on each", "redis", "claim", redissharded.Open},
		{"redis-bell", "redis+bell", "redis+bell://127.0.0.1:6379/0?queue=orders", "Redis List, with Pub/Sub as the bell", "redis", "", redisbell.Open},
		{"rabbitmq", "amqp", "amqp://guest:guest@127.0.0.1:5672/?queue=orders", "RabbitMQ, confirms and manual acks", "rabbitmq", "", rabbitmq.Open},
		{"kafka", "kafka", "kafka://127.0.0.1:9092/orders", "Kafka, consumer group", "kafka", "session", kafka.Open},
		{"nats", "nats", "nats://127.0.0.1:4222?queue=orders", "NATS JetStream, work queue with a durable pull consumer", "nats", "ack-wait", nats.Open},
		{"postgres", "postgres", "postgres://lab@127.0.0.1:5432/lab?queue=orders&sslmode=disable", "a table of PostgreSQL, FOR UPDATE SKIP LOCKED", "postgres", "lease", postgres.Open},
	}
}

// Lookup finds the backend of a name or of a URL's scheme.
func Lookup(nameOrURL string) (Backend, error) {
	scheme, _, isURL := strings.Cut(nameOrURL, "://")
	var names, schemes []string
	for _, b := range All() {
		if isURL && b.Scheme == scheme || !isURL && b.Name == nameOrURL {
			return b, nil
		}
		names, schemes = append(names, b.Name), append(schemes, b.Scheme)
	}
	if isURL {
		return Backend{}, fmt.Errorf("unknown queue scheme %q: the known ones are %s", scheme, strings.Join(schemes, ", "))
	}
	return Backend{}, fmt.Errorf("unknown queue %q: give a URL, or one of %s", nameOrURL, strings.Join(names, ", "))
}

// Open opens the queue that a URL names; a bare backend name stands for that
// backend's default URL. Passwords are redacted in every error.
func Open(ctx context.Context, nameOrURL string) (queue.Queue, error) {
	b, err := Lookup(nameOrURL)
	if err != nil {
		return nil, err
	}
	raw := nameOrURL
	if !strings.Contains(raw, "://") {
		raw = b.DefaultURL
	}
	u, err := url.Parse(raw)
	if err != nil {
		// The error of url.Parse quotes the whole URL, password and all.
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, fmt.Errorf("queue URL of scheme %s: %w", b.Scheme, err)
	}
	q, err := b.Open(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", u.Redacted(), err)
	}
	return q, nil
}
