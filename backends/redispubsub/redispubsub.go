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
// # URL
//
//	redis+pubsub://[user:password@]host[:6379][/db]?queue=orders
//
//	queue=NAME      the channel is pubsub:DB:{NAME}; required. Channels know no
//	                databases, so the number is part of the name
//	buffer=N        messages a consumer holds for Receive, 1 to 1000000; default 8192
//	pipeline=N      most messages of concurrent publishes in one round trip; default 512
//	timeout=D       to connect, and for an answer; default 3s
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
// go-redis logs a failed dial to standard error. Its logger belongs to the whole
// process, so this package leaves it alone; a program may call redis.SetLogger.
package redispubsub

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/envelope"
	"queuelab/backends/internal/params"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

type pubsub struct {
	server   redisconn.Server
	control  *redis.Client
	channel  string
	buffer   int
	pipeline int
	children redisconn.Children
}

// Open opens the queue that u names. It verifies that the server answers.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	p := params.New(u)
	p.Preset(map[string]map[string]string{
		"latency":    {"buffer": "1024"},
		"throughput": {"buffer": "100000"},
	})
	server, err := redisconn.Parse(u, p)
	name := p.Name("queue", "")
	q := &pubsub{
		server:   server,
		channel:  fmt.Sprintf("pubsub:%d:{%s}", server.DB, name),
		buffer:   p.Int("buffer", 8192, 1, 1_000_000),
		pipeline: p.Int("pipeline", 512, 1, 10000),
	}
	if name == "" {
		err = errors.Join(err, errors.New("the parameter queue=NAME is missing"))
	}
	if err := errors.Join(err, p.Err()); err != nil {
		return nil, err
	}
	q.control = server.Client(1)
	// How the server keeps its data does not matter here, whether it answers does.
	if _, err := server.Inspect(ctx, q.control); err != nil {
		return nil, errors.Join(err, q.control.Close())
	}
	return q, nil
}

// Capabilities implements queue.Queue. No setting of the server changes them.
func (q *pubsub) Capabilities() queue.Capabilities {
	return queue.Capabilities{
		Guarantee:     queue.AtMostOnce,
		Confirm:       queue.ConfirmNone,
		Attempts:      queue.NotCounted,
		Broadcast:     true,
		OrderedPerKey: true,
		Shared:        true,
	}
}

// Publisher implements queue.Queue. What it returns is a queue.ReceiverCounter.
func (q *pubsub) Publisher(ctx context.Context) (queue.Publisher, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var p *redisconn.Publisher[*redis.IntCmd]
	p = redisconn.NewPublisher(q.server.Client(2), q.pipeline, q.command, redisconn.CommandSize, publish,
		func() { q.children.Remove(p) })
	if err := q.children.Add(p); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return counted{p}, nil
}

type counted struct {
	*redisconn.Publisher[*redis.IntCmd]
}

// PublishCounted implements queue.ReceiverCounter.
func (c counted) PublishCounted(ctx context.Context, msgs ...queue.Message) ([]int64, error) {
	return c.Counted(ctx, msgs...)
}

var _ queue.ReceiverCounter = counted{}

func (q *pubsub) command(m queue.Message) *redis.IntCmd {
	return redis.NewIntCmd(context.Background(), "publish", q.channel,
		envelope.Append(make([]byte, 0, envelope.Size(m)), m))
}

func publish(ctx context.Context, c *redis.Client, cmds []*redis.IntCmd, results []redisconn.Sent) {
	redisconn.Pipeline(ctx, c, cmds, results)
	for i, cmd := range cmds {
		results[i].Receivers = cmd.Val()
	}
}

// Delete implements queue.Queue. A channel holds nothing.
func (q *pubsub) Delete(ctx context.Context) error {
	if err := q.control.Ping(ctx).Err(); errors.Is(err, redis.ErrClosed) {
		return queue.ErrClosed
	}
	return ctx.Err()
}

// Close implements queue.Queue.
func (q *pubsub) Close() error {
	first, err := q.children.CloseAll()
	if !first {
		return nil
	}
	return errors.Join(err, q.control.Close())
}
