// Package redispubsub is a queue over Redis Pub/Sub: PUBLISH and SUBSCRIBE.
//
// # Delivery
//
// At most once, and to whoever listens at that moment: every consumer gets every
// message, and a message that nobody hears is gone although its publish is
// accepted. The publisher is a queue.ReceiverCounter, which tells how many heard
// it; even that is no receipt. Nothing is stored, so there is nothing to ack: Ack
// settles in this process and never fails, Nack is queue.ErrUnsupported. A
// consumer is returned once the server has confirmed its subscription.
//
// With route=key the queue is many channels, one for each key. A consumer hears all
// of them by a pattern, or those that bind names: several channels, or patterns,
// which Redis matches one by one against every message. A message that matches two
// of them is heard twice, as Redis has it.
//
// # URL
//
//	redis+pubsub://[user:password@]host[:6379][/db]?queue=orders
//
//	queue=NAME      the channel is pubsub:DB:{NAME}; required. Channels know no
//	                databases, so the number is part of the name
//	route=key       the channel is pubsub:DB:{NAME}:KEY, by the message's key; default
//	                queue: one channel for all
//	bind=A,B*,...   with route=key: the keys that consumers hear, or patterns of them,
//	                with *, ?, [ and \ as in PSUBSCRIBE; default *, all
//	buffer=N        messages a consumer holds for Receive, 1 to 1000000; default 8192
//	pipeline=N      most messages of concurrent publishes in one round trip; default 512
//	timeout=D       to connect, and for an answer; default 3s
//	retries=N       go-redis sends a command that failed again, up to so often, and
//	                says nothing of it; 0 to 10, default 0. See Crash behaviour
//	preset=latency  buffer=1024
//	preset=throughput  buffer=100000
//
// # Crash behaviour
//
// A consumer that is killed loses its buffer and all that is published until
// another subscribes. When the connection breaks the consumer subscribes again,
// with a pause that grows to a second; what was published meanwhile is gone, and
// the server says nothing of it. A connection on which the server has been silent
// for about two timeouts is given up as well. Each gap is a *LossError of
// Receive.
//
// A consumer that is too slow loses messages, too. When its buffer is full the
// newest are dropped: one by one, counted, and told by a *LossError of Receive in
// the place where they are missing. Not reading instead would fill the
// server's output buffer for this client, and when that is full (32 MB, or 8 MB
// for a minute) the server drops the client with all that is in it.
//
// With retries go-redis sends a publish whose reply was lost again, and it is heard
// twice.
//
// go-redis logs a failed dial to standard error. Its logger belongs to the whole
// process, so this package leaves it alone; a program may call redis.SetLogger.
package redispubsub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/params"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

type pubsub struct {
	*redisconn.Base
	channel  string
	routed   bool     // channel is the beginning of many
	channels []string // that consumers subscribe to
	patterns []string
	buffer   int
}

// Open opens the queue that u names. It verifies that the server answers.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	p := params.New(u)
	p.Preset(map[string]map[string]string{
		"latency":    {"buffer": "1024"},
		"throughput": {"buffer": "100000"},
	})
	q := &pubsub{buffer: p.Int("buffer", 8192, 1, 1_000_000), routed: p.OneOf("route", "queue", "key") == "key"}
	bind := p.String("bind", "")
	if bind != "" && !q.routed {
		return nil, fmt.Errorf("parameter bind=%q: want route=key as well, without it there is one channel for all", bind)
	}
	var err error
	// How the server keeps its data does not matter here, whether it answers does.
	if q.Base, err = redisconn.Open(ctx, "redis-pubsub", u, p); err != nil {
		return nil, err
	}
	// No setting of the server changes them.
	q.Caps = queue.Capabilities{
		Guarantee:     queue.AtMostOnce,
		Confirm:       queue.ConfirmNone,
		Attempts:      queue.NotCounted,
		Broadcast:     true,
		OrderedPerKey: true,
		Shared:        true,
		Routing:       q.routed,
	}
	q.channel = fmt.Sprintf("pubsub:%d:{%s}", q.DB, q.Name)
	if !q.routed {
		q.channels = []string{q.channel}
		return q, nil
	}
	q.channel += ":"
	for _, key := range strings.Split(cmp.Or(bind, "*"), ",") {
		if strings.ContainsAny(key, `*?[\`) {
			q.patterns = append(q.patterns, q.channel+key)
		} else {
			q.channels = append(q.channels, q.channel+key)
		}
	}
	return q, nil
}

// Publisher implements queue.Queue. What it returns is a queue.ReceiverCounter.
func (q *pubsub) Publisher(ctx context.Context) (queue.Publisher, error) {
	return redisconn.NewCounted(ctx, q.Base, q.commands, redisconn.CommandSize, publish)
}

func (q *pubsub) commands(msgs []queue.Message) []*redis.IntCmd {
	cmds, args := make([]*redis.IntCmd, len(msgs)), make([]any, 0, 3*len(msgs))
	for i, v := range redisconn.Envelopes(msgs) {
		channel := &q.channel
		if q.routed {
			one := q.channel + msgs[i].Key
			channel = &one
		}
		args = append(args, "publish", channel, v)
		cmds[i] = redis.NewIntCmd(context.Background(), args[3*i:]...)
	}
	return cmds
}

func publish(ctx context.Context, c *redis.Client, cmds []*redis.IntCmd, results []redisconn.Sent) {
	redisconn.Pipeline(ctx, c, cmds, results)
	for i, cmd := range cmds {
		results[i].Receivers = cmd.Val()
	}
}

// Delete implements queue.Queue. A channel holds nothing.
func (q *pubsub) Delete(ctx context.Context) error {
	if err := q.Control.Ping(ctx).Err(); errors.Is(err, redis.ErrClosed) {
		return queue.ErrClosed
	}
	return ctx.Err()
}
