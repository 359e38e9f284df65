// Package rabbitmq is a queue on RabbitMQ: a fanout exchange, one durable queue
// per consumer group, publisher confirms, and acks by hand.
//
// # Delivery
//
// At least once. The exchange bears the queue's name, and every group has a
// queue QUEUE.GROUP bound to it, declared by Open: groups each get everything,
// consumers of one group compete. A message published before a group was first
// opened is not seen by that group.
//
// A nil Publish means that the broker confirmed every message and routed it to
// at least one group's queue. Messages are published as mandatory, so a message
// without a queue comes back and is rejected, though the broker acks it too. A
// nack that arrives while the channel is open is a rejection. Messages that
// were outstanding when a channel or connection died are unknown: the client
// library resolves them as if they had been nacked, and here the two are told
// apart. A message is also certainly rejected when the broker could not be
// reached, or when its caller left before any byte of it was written, as
// happens while the broker blocks publishers (connection.blocked). Every
// message of one key goes over the same channel, so a key's order survives.
//
// A consumer holds at most prefetch unsettled deliveries, those that wait in
// this process included. Acks go to the channel that the delivery came from,
// one frame for the oldest deliveries where all of them are acked at once. They
// are written to a socket and nobody answers, so a nil Ack is not confirmed.
// A delivery of a connection that is known to be dead was given back by the
// broker: settling it is ErrLeaseLost. That is no fence: while a connection is
// cut off and nobody has noticed, an ack is nil and may come to nothing.
//
// Attempt is counted by the broker in a quorum queue. A classic queue only
// flags a redelivery (Attempt 2), and after an unclean restart it flags
// messages that nobody ever got, too. RabbitMQ 4 drops a message of a quorum
// queue after 20 deliveries unless a policy sets delivery-limit: a broker that
// is to keep poison messages for ever has to be told so.
//
// With auto-ack=true delivery is at most once: the broker forgets what it has
// written to the socket. Ack is then a local matter, Nack is unsupported, and
// prefetch bounds nothing: as much as the queue holds may wait in this
// process's memory and is lost with it. Close publishes anew what Receive has
// not taken, behind what is queued, as far as 2 s suffice for that.
//
// # URL
//
//	amqp://user:password@host:port/vhost?queue=orders
//
//	queue            name of the exchange; default "orders"
//	group            consumer group; default "workers"
//	type             classic (default) or quorum
//	persistent       true (default): stored on disk; false: kept in memory. A quorum queue always stores
//	confirm          true (default): wait for the broker's confirm; false: nil after the write, unroutable messages vanish
//	auto-ack         false (default); true: at most once, see above
//	prefetch         most unsettled deliveries of one consumer, 1 to 65535; default 64
//	window           most unconfirmed messages on one channel, 1 to 1000; default 500
//	channels         channels of one publisher, 1 to 16; default 2. A key always uses the same one
//	confirm-timeout  longest wait for a confirm, then the message is unknown; default 10s
//	settle           how long Open waits after it has created the group's queue; default 2s, 0s unless
//	                 messages are persistent and confirmed. See Crash behaviour
//	preset           latency (prefetch=16) or throughput (prefetch=1000, window=1000); explicit parameters win
//
// Ids are at most 255 bytes, and so are the names of headers. An id, a key and
// all headers together must fit into one frame, 128 KiB unless the broker was
// told otherwise. What does not fit is rejected, never cut short.
//
// # Crash behaviour
//
// A consumer that dies gives back all that it held, within milliseconds of the
// reset; behind a black hole only after the heartbeats failed, about 30 s.
// Whoever holds such a delivery handles a message that another one gets again.
//
// A broker that is killed keeps persistent, confirmed messages. Up to RabbitMQ
// 3.10 a classic queue syncs to disk before it confirms, as a quorum queue always
// does; a classic queue of a later version has only handed them to the operating
// system. With persistent=false it loses everything, confirmed or not, and the
// queue itself stays. Without confirms nothing is promised.
//
// RabbitMQ answers a declaration before the new queue is on disk: a broker that
// is killed a second later comes back without it, or with a quorum queue that
// never answers again, confirmed messages and all. Therefore Open waits once,
// when it has created the queue, so that what is published later is durable.
//
// After a cut, publisher and consumer build a new connection, new channels and
// the topology anew, with a jittered back-off from 50 ms to 2 s. The client
// library's own recovery stays off: it lets a late ack settle another message.
// A queue that was deleted comes back, empty, with the next consumer's
// connection.
package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"queuelab/backends/internal/params"
	"queuelab/queue"
)

// settleTime is how long RabbitMQ 3.10 needs until a new queue is on disk. Of
// quorum queues that were killed up to 0.7 s after their declaration, six of six
// came back without a leader, for ever; after 1.5 s, none of four did.
const settleTime = 2 * time.Second

// config is what the URL says. It does not change while the queue is open.
type config struct {
	target         // where the broker is
	exchange       string
	queue          string
	kind           string // the broker's x-queue-type
	persistent     bool
	confirm        bool
	autoAck        bool
	prefetch       int
	window         int
	channels       int
	confirmTimeout time.Duration
	settle         time.Duration
}

func parse(u *url.URL) (config, error) {
	p := params.New(u)
	p.Preset(map[string]map[string]string{
		"latency":    {"prefetch": "16"},
		"throughput": {"prefetch": "1000", "window": "1000"},
	})
	c := config{
		exchange:       p.Name("queue", "orders"),
		kind:           p.OneOf("type", "classic", "quorum"),
		persistent:     p.Bool("persistent", true),
		confirm:        p.Bool("confirm", true),
		autoAck:        p.Bool("auto-ack", false),
		prefetch:       p.Int("prefetch", 64, 1, 65535),
		window:         p.Int("window", 500, 1, 1000),
		channels:       p.Int("channels", 2, 1, 16),
		confirmTimeout: p.Duration("confirm-timeout", 10*time.Second, 10*time.Millisecond, 10*time.Minute),
	}
	c.queue = c.exchange + "." + p.Name("group", "workers")
	settle := time.Duration(0)
	if c.persistent && c.confirm {
		settle = settleTime
	}
	c.settle = p.Duration("settle", settle, 0, time.Minute)
	if err := p.Err(); err != nil {
		return config{}, err
	}
	switch {
	case strings.HasPrefix(c.exchange, "amq."):
		return config{}, fmt.Errorf("parameter queue=%q: names that begin with \"amq.\" belong to the broker", c.exchange)
	case len(c.queue) > maxShort:
		return config{}, fmt.Errorf("queue and group together are %d bytes: RabbitMQ allows %d", len(c.queue), maxShort)
	case c.kind == "quorum" && !c.persistent:
		return config{}, errors.New("persistent=false has no meaning with type=quorum, which stores every message: leave it out, or use type=classic")
	}
	var err error
	c.target, err = parseTarget(u)
	return c, err
}

// Open connects, declares the exchange and the group's queue, and returns the
// queue that u names. It fails, in one sentence, where the broker is not there,
// refuses the user or has no such virtual host, and where the queue exists with
// another type.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	c, err := parse(u)
	if err != nil {
		return nil, fmt.Errorf("rabbitmq: %w", err)
	}
	q := &rabbitQueue{config: c, open: make(map[closer]struct{})}
	q.admin = newLink(q.openAdmin, (*admin).alive, (*admin).close)
	a, err := q.admin.get(ctx)
	if err != nil {
		q.admin.close()
		return nil, err
	}
	q.frameMax = a.conn.Config.FrameSize
	if a.created {
		select {
		case <-time.After(c.settle):
		case <-ctx.Done():
			q.admin.close()
			return nil, ctx.Err()
		}
	}
	version, _ := a.conn.Properties["version"].(string)
	q.caps = c.capabilities(version)
	return q, nil
}

// syncsClassic reports whether a classic queue of that version syncs to disk
// before it confirms: measured on 3.10, and certainly not so in 4.
func syncsClassic(version string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return n == 2 && major == 3 && minor <= 10
}

// capabilities claims for a broker of that version.
func (c config) capabilities(version string) queue.Capabilities {
	caps := queue.Capabilities{
		Guarantee:     queue.AtLeastOnce,
		Attempts:      queue.FlaggedByBroker,
		Groups:        true,
		Nack:          !c.autoAck,
		OrderedPerKey: true,
		Stored:        true,
		Durable:       c.persistent && c.confirm,
		Shared:        true,
	}
	if c.autoAck {
		caps.Guarantee = queue.AtMostOnce
	}
	if c.kind == "quorum" {
		caps.Attempts = queue.CountedByBroker
	}
	switch {
	case !c.confirm:
		caps.Confirm = queue.ConfirmNone
	case !c.persistent:
		caps.Confirm = queue.ConfirmMemory
	case c.kind == "quorum", syncsClassic(version):
		caps.Confirm = queue.ConfirmDisk
	default:
		caps.Confirm = queue.ConfirmOS
	}
	return caps
}

type closer interface{ Close() error }

type rabbitQueue struct {
	config
	caps     queue.Capabilities
	frameMax int // bytes, as agreed with the broker
	admin    *link[*admin]

	mu     sync.Mutex
	open   map[closer]struct{} // publishers and consumers
	closed bool
}

func (q *rabbitQueue) Capabilities() queue.Capabilities { return q.caps }

// keep remembers c for Close, unless the queue was closed meanwhile.
func (q *rabbitQueue) keep(c closer) error {
	q.mu.Lock()
	if !q.closed {
		q.open[c] = struct{}{}
		q.mu.Unlock()
		return nil
	}
	q.mu.Unlock()
	c.Close()
	return queue.ErrClosed
}

func (q *rabbitQueue) forget(c closer) {
	q.mu.Lock()
	delete(q.open, c)
	q.mu.Unlock()
}

// Close implements queue.Queue.
func (q *rabbitQueue) Close() error {
	q.mu.Lock()
	q.closed = true
	open := make([]closer, 0, len(q.open))
	for c := range q.open {
		open = append(open, c)
	}
	q.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range open {
		wg.Go(func() { c.Close() })
	}
	wg.Wait()
	q.admin.close()
	return nil
}

// Delete implements queue.Queue. It removes the exchange and the queue of this
// handle's group; AMQP does not tell the names of other groups' queues, so each
// group's handle removes its own.
func (q *rabbitQueue) Delete(ctx context.Context) error {
	return q.administer(ctx, "delete", func(ch *amqp.Channel) error {
		if _, err := ch.QueueDelete(q.queue, false, false, false); err != nil {
			return err
		}
		return ch.ExchangeDelete(q.exchange, false, false)
	})
}

// Backlog implements queue.Backlogger. The broker tells a client only what is
// ready in this handle's group; the other counts are -1.
func (q *rabbitQueue) Backlog(ctx context.Context) (queue.Backlog, error) {
	b := queue.Backlog{InFlight: -1, Dead: -1}
	err := q.administer(ctx, "backlog", func(ch *amqp.Channel) error {
		state, err := ch.QueueDeclarePassive(q.queue, true, false, false, false, nil)
		b.Ready = int64(state.Messages)
		return err
	})
	return b, err
}
