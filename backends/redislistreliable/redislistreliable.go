// Package redislistreliable is a queue on Redis Lists that remembers what is being
// worked on: LPUSH, BLMOVE into a processing list of the consumer's own, LREM when
// the message is acked. It needs Redis 6.2 or later.
//
// # Delivery
//
// At least once. What was taken stands on the consumer's processing list until it
// is acked. Consumers compete. Each has a name of its own, leased for the time
// claim, and renews it for as long as its process lives, so a slow handler is not
// robbed, and a handler that hangs for ever keeps its messages. Whoever finds a
// name whose lease has run out gives back all that stands under it.
//
// What is given back, by Nack, Close or for the dead, stands first in the queue, in
// its old order: one consumer sees the messages of a key in publish order. Each time
// is counted, in front of the message itself, and Delivery.Attempt is that count.
// It makes the message on the list another value, too: an Ack by a consumer that
// has lost its lease finds nothing to remove and is queue.ErrLeaseLost. So is an Ack
// that is tried again after its first answer was lost, and that answer was yes.
//
// # URL
//
//	redis+list-reliable://[user:password@]host[:6379][/db]?queue=orders
//
//	queue=NAME      the list is list-reliable:{NAME}; required
//	claim=D         lease of a consumer's name; 1s to 1h, default 30s. Make it three
//	                times the longest pause of a process, not of a handler
//	batch=N         most messages taken in one round trip, 1 to 1000; default 100
//	pipeline=N      most messages of concurrent publishes in one LPUSH; default 512
//	timeout=D       to connect, and for an answer; default 3s
//	retries=N       this, wait=N, sentinel=H:P,… and master=NAME are as with redislist
//	preset=latency  batch=1
//	preset=throughput  batch=1000
//
// BLMOVE takes one message. More than one is taken by a script, and BLMOVE is only
// waited with. An ack sends the message back to name it, as LREM wants it: what is
// large is paid for twice.
//
// # Crash behaviour
//
// What a killed consumer held comes again between claim and four thirds of claim
// later, if another one is open. A take whose reply is lost leaves its messages on
// the consumer's own processing list, where it looks after each failure. Leases run
// by the broker's clock: one that was down or stopped for longer than a lease may
// give what a live consumer holds to another.
//
// What a killed broker keeps is its own setting, as with redislist. Without an
// append-only file it forgets the messages and the names; consumers register again
// with their next try.
package redislistreliable

import (
	"context"
	"net/url"
	"time"

	"queuelab/backends/internal/params"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

type reliable struct {
	*redisconn.Base
	key   string
	claim time.Duration
	batch int
}

// Open opens the queue that u names. It verifies that the server answers and
// reads how it keeps its data.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	p := params.New(u)
	p.Preset(map[string]map[string]string{
		"latency":    {"batch": "1"},
		"throughput": {"batch": "1000"},
	})
	q := &reliable{
		claim: p.Duration("claim", 30*time.Second, time.Second, time.Hour),
		batch: p.Int("batch", 100, 1, 1000),
	}
	var err error
	if q.Base, err = redisconn.Open(ctx, "redis-list-reliable", u, p); err != nil {
		return nil, err
	}
	q.key = "list-reliable:{" + q.Name + "}"
	q.Caps = q.HeldMessages()
	return q, nil
}

// The other keys stand beside the list and hash to the same slot.
func (q *reliable) names() string                 { return q.key + ":names" }
func (q *reliable) processing(name string) string { return q.key + ":processing:" + name }

// Publisher implements queue.Queue.
func (q *reliable) Publisher(ctx context.Context) (queue.Publisher, error) {
	return redisconn.NewPublisher(ctx, q.Base, redisconn.Envelopes, redisconn.ValueSize, redisconn.Push(q.key))
}

// Consumer implements queue.Queue. Its name is registered before it takes
// anything.
func (q *reliable) Consumer(ctx context.Context) (queue.Consumer, error) {
	c := &consumer{q: q, name: redisconn.NewName(), looked: time.Now()}
	c.processing = q.processing(c.name)
	return redisconn.NewHolder(ctx, q.Base, c, q.claim/3)
}

// Backlog implements queue.Backlogger.
func (q *reliable) Backlog(ctx context.Context) (queue.Backlog, error) {
	return q.Counts(ctx, countScript, q.key, q.names())
}

// Delete implements queue.Queue.
func (q *reliable) Delete(ctx context.Context) error {
	names, err := q.Control.ZRange(ctx, q.names(), 0, -1).Result()
	if err != nil {
		return q.Wrap("delete", err)
	}
	keys := []string{q.key, q.names()}
	for _, name := range names {
		keys = append(keys, q.processing(name))
	}
	return q.Unlink(ctx, keys...)
}
