// Package redisbell is a queue that stores on a Redis List and rings a bell over
// Pub/Sub: LPUSH and PUBLISH, and a consumer that looks with RPOP, finds nothing,
// and waits for the bell.
//
// # Delivery
//
// At most once, as RPOP removes what it delivers: there is nothing to ack, Ack
// settles in this process and never fails, Nack is queue.ErrUnsupported. Consumers
// compete, and the bell wakes all that wait. The list is first in, first out.
//
// A message is accepted when it is on the list. The bell is no part of that:
// nobody stores it, and a consumer looks first and subscribes then, as the
// tutorials have it. A bell that rings in between is heard by nobody, and so is
// one that rings while the connection is down. The message then stays on the list
// although consumers wait, until the next message rings again, a consumer begins
// another Receive, or, with poll=D, D is over. Without poll the last message
// before a pause can lie there for as long as the pause lasts: it is stranded, not
// lost, and no error says so.
//
// # URL
//
//	redis+bell://[user:password@]host[:6379][/db]?queue=orders
//
//	queue=NAME      the list is bell:{NAME}, and the channel bell:DB:{NAME}; required
//	poll=D          a consumer that waits also looks so often, 10ms to 1h; default
//	                0s: it trusts the bell
//	batch=N         most messages popped at once, 1 to 1000; default 1. Above 1
//	                needs Redis 6.2. What a killed consumer loses is a batch
//	pipeline=N      most messages of concurrent publishes in one LPUSH, which rings
//	                once; default 512
//	timeout=D       to connect, and for an answer; default 3s
//	retries=N       go-redis' own, behind everybody's back: a publish whose reply is
//	                lost is stored twice; 0 to 10, default 0
//	preset=latency  batch=1
//	preset=throughput  batch=100
//
// # Crash behaviour
//
// A consumer that is killed loses what it had popped: one message with batch=1,
// at most a batch otherwise; likewise a pop is lost whose reply is under way when
// its connection breaks. A Receive that is cancelled loses nothing: its late pop
// is kept for the next one, and Close pushes it back to where it came from. When
// the bell's connection breaks, Receive returns an error, and the next one looks
// again; a connection on which the server is silent for two timeouts counts as
// broken.
//
// What a killed broker keeps of the list is its own setting, which Open reads.
//
// go-redis logs a failed dial to standard error. Its logger belongs to the whole
// process, so this package leaves it alone; a program may call redis.SetLogger.
package redisbell

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/params"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

type bell struct {
	*redisconn.Base
	list    string
	channel string
	poll    time.Duration // 0: never
	batch   int
}

// Open opens the queue that u names. It verifies that the server answers and
// reads how it keeps its data.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	p := params.New(u)
	p.Preset(map[string]map[string]string{
		"latency":    {"batch": "1"},
		"throughput": {"batch": "100"},
	})
	q := &bell{poll: p.Duration("poll", 0, 0, time.Hour), batch: p.Int("batch", 1, 1, 1000)}
	if q.poll > 0 && q.poll < 10*time.Millisecond {
		return nil, fmt.Errorf("parameter poll=%v: want 0s, or from 10ms to 1h", q.poll)
	}
	var err error
	if q.Base, err = redisconn.Open(ctx, "redis-bell", u, p); err != nil {
		return nil, err
	}
	q.list = "bell:{" + q.Name + "}"
	q.channel = fmt.Sprintf("bell:%d:{%s}", q.DB, q.Name) // channels know no databases
	// Without poll Stored is true to the letter: a message waits for a consumer that
	// does not exist yet, and may wait beside one that does.
	q.Caps = q.PoppedLists()
	q.Caps.MayStrand = q.poll == 0
	return q, nil
}

// Publisher implements queue.Queue.
func (q *bell) Publisher(ctx context.Context) (queue.Publisher, error) {
	return redisconn.NewPublisher(ctx, q.Base, redisconn.Envelopes, redisconn.ValueSize, q.push)
}

// push stores, and rings in the same round trip. A bell that fails changes
// nothing of what was accepted.
func (q *bell) push(ctx context.Context, c *redis.Client, values []*redisconn.Value, results []redisconn.Sent) {
	args := make([]any, 0, len(values)+2)
	args = append(args, "lpush", q.list)
	for _, v := range values {
		args = append(args, v)
	}
	pipe := c.Pipeline()
	stored := redis.NewIntCmd(ctx, args...)
	_ = pipe.Process(ctx, stored) // only queues it
	pipe.Publish(ctx, q.channel, "")
	_, _ = pipe.Exec(ctx) // the first error of those that each command has
	for i := range results {
		results[i].Err = stored.Err()
	}
}

// Backlog implements queue.Backlogger. A list knows nothing of deliveries.
func (q *bell) Backlog(ctx context.Context) (queue.Backlog, error) { return q.Lengths(ctx, q.list) }

// Delete implements queue.Queue.
func (q *bell) Delete(ctx context.Context) error { return q.Unlink(ctx, q.list) }
