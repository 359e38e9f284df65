// Package redislist is a queue on a Redis List: LPUSH and BRPOP.
//
// # Delivery
//
// At most once. BRPOP removes what it delivers: there is nothing to ack, and
// nothing left to give back. Ack only settles the delivery in this process and
// never fails; Nack is queue.ErrUnsupported. Consumers compete. The list is first
// in, first out, so one consumer sees a key's messages in publish order.
//
// # URL
//
//	redis+list://[user:password@]host[:6379][/db]?queue=orders
//
//	queue=NAME      the list is list:{NAME}; required
//	batch=N         most messages popped at once, 1 to 1000; default 1. Above 1
//	                needs Redis 7. What a killed consumer loses is a batch
//	pipeline=N      most messages of concurrent publishes in one LPUSH; default 512
//	timeout=D       to connect, and for an answer; default 3s
//	retries=N       go-redis sends a command that failed again, up to so often, and
//	                says nothing of it; 0 to 10, default 0. See Crash behaviour
//	sentinel=H:P,H:P  Sentinels, with master=NAME: the server is the one that they call
//	                so, and the URL's host is not used. Not durable then without wait
//	wait=N          a message is accepted once N replicas have it too, and unknown where
//	                they have not within a third of timeout; default 0
//	preset=latency  batch=1
//	preset=throughput  batch=100
//
// # Crash behaviour
//
// A consumer that is killed loses what it had popped: one message with batch=1,
// at most a batch otherwise. Likewise one pop is lost with each connection that
// breaks while its reply is under way: the list cannot tell that nobody heard it.
// A consumer that has silently vanished is handed messages for one more second
// at most. A Receive that is cancelled loses nothing: its late reply is kept for
// the next one, and Close pushes it back to where it came from.
//
// What a killed broker keeps is its own setting, which Open reads: without an
// append-only file it forgets everything. With appendfsync everysec and a slow
// disk Redis answers up to two seconds before it writes, and a kill then loses
// those; always does not. A publish whose reply is lost is
// unknown and is never sent again by this package, so it is stored once or not at
// all. With retries go-redis does send it again: a publish whose reply is lost is
// accepted and stored twice, and a pop whose reply is lost is gone without an
// error, since the pop that go-redis sends for it brings the next message.
//
// go-redis logs a failed dial to standard error. Its logger belongs to the whole
// process, so this package leaves it alone; a program may call redis.SetLogger.
package redislist

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"queuelab/backends/internal/params"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

type list struct {
	redisconn.List
	batch int
}

// Open opens the queue that u names. It verifies that the server answers and
// reads how it keeps its data.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	p := params.New(u)
	p.Preset(map[string]map[string]string{
		"latency":    {"batch": "1"},
		"throughput": {"batch": "100"},
	})
	q := &list{batch: p.Int("batch", 1, 1, 1000)}
	var err error
	if q.List, err = redisconn.OpenList(ctx, "redis-list", "list", u, p); err != nil {
		return nil, err
	}
	q.Pop = q.pop
	if q.batch > 1 {
		if err := q.Needs(7, fmt.Sprintf("batch=%d (BLMPOP)", q.batch)); err != nil {
			return nil, errors.Join(err, q.Close())
		}
	}
	return q, nil
}

// pop takes at most a batch off the list, however many are asked for: what is
// popped is on nobody's list any more.
func (q *list) pop(p *redisconn.Popper, most int) ([]redisconn.Popped, error) {
	seconds := int(redisconn.Block / time.Second)
	var reply redisconn.Reply
	var err error
	n := min(most, q.batch)
	if n > 1 {
		reply, err = p.Do("blmpop", seconds, 1, q.Key, "right", "count", n)
	} else {
		reply, err = p.Do("brpop", q.Key, seconds)
	}
	if err != nil {
		return nil, err
	}
	return redisconn.PoppedBy(reply, n > 1)
}
