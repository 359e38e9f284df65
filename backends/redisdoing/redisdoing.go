// Package redisdoing is the queue that tutorials build when a List alone loses too
// much: a list of what is pending, a hash of what is being done (with the time and
// the worker), and a rollback of what has been done for too long. It needs Redis 6.2
// or later.
//
// # Delivery
//
// With pop=tutorial, the default, it is made as the tutorials make it. BRPOP takes a
// message off the list, and then HSET writes it into the hash, under the message's
// id; HDEL is the ack. Every consumer looks through the whole hash now and then,
// and whatever is older than claim it deletes and pushes onto the list again. So it
// is at least once, but for these:
//
//   - Between BRPOP and HSET the message is in one process's memory and nowhere
//     else. Likewise between HDEL and LPUSH of a rollback. Whoever is killed there
//     loses it: Capabilities.PopGap.
//   - A slow worker that is alive is robbed: its message is done twice at once.
//   - Its late ack deletes the entry of whoever has the message now, since both are
//     written under one id. Nothing tells it.
//   - The time is the worker's clock, compared with another's.
//
// With pop=atomic a script takes the message and writes it down in one step, by the
// broker's clock, under a name of this taking; another rolls back in one step. That
// leaves only the slow worker, whose late Ack or Nack is queue.ErrLeaseLost. So is
// an Ack that is tried again after its first answer was lost, and that answer was
// yes. The broker counts: Delivery.Attempt is how often the message was taken.
//
// Consumers compete. What is given back, by Nack, Close or the rollback, comes after
// what is on the list; otherwise one consumer sees the messages in publish order.
//
// # URL
//
//	redis+doing://[user:password@]host[:6379][/db]?queue=orders
//
//	queue=NAME      the list is doing:{NAME}, the hash doing:{NAME}:doing; required
//	pop=tutorial    BRPOP, then HSET; the default
//	pop=atomic      one script
//	claim=D         how long a message may be worked on, with all that its consumer
//	                took before it; 1s to 1h, default 30s
//	batch=N         most messages that one script takes, 1 to 1000; default 1. BRPOP
//	                takes one
//	pipeline=N      most messages of concurrent publishes in one LPUSH; default 512
//	timeout=D       to connect, and for an answer; default 3s
//	retries=N       this, wait=N, sentinel=H:P,… and master=NAME are as with redislist
//	preset=latency  batch=1
//	preset=throughput  batch=100
//
// All that open one queue must agree on pop. The waiting of pop=atomic is a BLMOVE
// of the list's last message to where it is: a script cannot wait.
//
// # Crash behaviour
//
// What a killed consumer held comes again between claim and one and a half times
// claim later, if another one is open. A lost reply to BRPOP is a lost message; one
// to the script is a message that comes again. What a killed broker keeps is its
// own setting, as with redislist.
package redisdoing

import (
	"context"
	"net/url"
	"time"

	"queuelab/backends/internal/params"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

type doing struct {
	*redisconn.Base
	pending string
	doing   string
	atomic  bool
	claim   time.Duration
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
	q := &doing{
		atomic: p.OneOf("pop", "tutorial", "atomic") == "atomic",
		claim:  p.Duration("claim", 30*time.Second, time.Second, time.Hour),
		batch:  p.Int("batch", 1, 1, 1000),
	}
	var err error
	if q.Base, err = redisconn.Open(ctx, "redis-doing", u, p); err != nil {
		return nil, err
	}
	q.pending = "doing:{" + q.Name + "}"
	q.doing = q.pending + ":doing"
	q.Caps = q.HeldMessages()
	if !q.atomic {
		q.Caps.PopGap, q.Caps.Attempts, q.Caps.LeaseFenced = true, queue.NotCounted, false
	}
	return q, nil
}

// Publisher implements queue.Queue.
func (q *doing) Publisher(ctx context.Context) (queue.Publisher, error) {
	return redisconn.NewPublisher(ctx, q.Base, redisconn.Envelopes, redisconn.ValueSize, redisconn.Push(q.pending))
}

// Consumer implements queue.Queue.
func (q *doing) Consumer(ctx context.Context) (queue.Consumer, error) {
	var held redisconn.Held = &tutorial{q: q, name: redisconn.NewName()}
	if q.atomic {
		held = &atomic{q: q, name: redisconn.NewName()}
	}
	return redisconn.NewHolder(ctx, q.Base, held, q.claim/2)
}

// Backlog implements queue.Backlogger.
func (q *doing) Backlog(ctx context.Context) (queue.Backlog, error) {
	pipe := q.Control.TxPipeline() // or a message could be on its way from one to the other
	ready, inFlight := pipe.LLen(ctx, q.pending), pipe.HLen(ctx, q.doing)
	if _, err := pipe.Exec(ctx); err != nil {
		return queue.Backlog{}, q.Wrap("count the backlog", err)
	}
	return queue.Backlog{Ready: ready.Val(), InFlight: inFlight.Val(), Dead: -1}, nil
}

// Delete implements queue.Queue.
func (q *doing) Delete(ctx context.Context) error { return q.Unlink(ctx, q.pending, q.doing) }
