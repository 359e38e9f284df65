package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"queuelab/backends/internal/driver"
	"queuelab/backends/internal/params"
	"queuelab/queue"
)

const (
	workQueue = "workqueue"
	interest  = "interest"
)

type stream struct {
	servers           []string // as the library wants them; hold the password, never printed
	name, subject     string
	group, retention  string
	ackWait, dedupe   time.Duration
	pending, prefetch int
	replicas          int
	timeout           time.Duration
	caps              queue.Capabilities
	control           *link
	js                jetstream.JetStream
	closed            atomic.Bool
	children          driver.Children
}

// Open opens the queue that u names. It creates the stream and the group's
// consumer where there are none, and asks how the server syncs.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	q, err := parse(u)
	if err != nil {
		return nil, err
	}
	if q.control, err = q.dial(ctx, "control"); err != nil {
		return nil, err
	}
	if err := q.declare(ctx); err != nil {
		q.control.Close()
		return nil, err
	}
	q.caps = q.capabilities(syncsAlways(ctx, q.control.Conn))
	return q, nil
}

func parse(u *url.URL) (*stream, error) {
	p := params.New(u)
	p.Preset(map[string]map[string]string{
		"latency":    {"prefetch": "16"},
		"throughput": {"prefetch": "500"},
	})
	q := &stream{
		name:      p.Name("queue", ""),
		retention: p.OneOf("retention", workQueue, interest),
		ackWait:   p.Duration("ack-wait", 30*time.Second, 100*time.Millisecond, time.Hour),
		pending:   p.Int("pending", 1000, 1, 1_000_000),
		prefetch:  p.Int("prefetch", 64, 1, 10000),
		dedupe:    p.Duration("dedupe", 0, 0, time.Hour),
		replicas:  p.Int("replicas", 1, 1, 5),
		timeout:   p.Duration("timeout", 5*time.Second, 10*time.Millisecond, 10*time.Minute),
	}
	const workers = "workers"
	q.group = p.Name("group", workers)
	q.subject = "queue." + q.name
	if err := p.Err(); err != nil {
		return nil, err
	}
	switch {
	case q.name == "":
		return nil, errors.New("the parameter queue=NAME is missing")
	case strings.Contains(q.name+q.group, "."):
		return nil, fmt.Errorf("queue %q, group %q: NATS allows no dot in the name of a stream or a consumer", q.name, q.group)
	case q.group != workers && q.retention == workQueue:
		return nil, fmt.Errorf("parameter group=%q: with retention=workqueue there is one group only: leave it out, or use retention=interest", q.group)
	case q.dedupe != 0 && q.dedupe < 100*time.Millisecond:
		return nil, fmt.Errorf("parameter dedupe=%v: want 0s, or at least 100ms", q.dedupe)
	case u.Host == "":
		return nil, errors.New("want nats://user:password@host:port, and find no host")
	}
	for _, host := range strings.Split(u.Host, ",") {
		q.servers = append(q.servers, (&url.URL{Scheme: "nats", User: u.User, Host: host}).String())
	}
	return q, nil
}

// declare makes the stream and the group's consumer. Each is a no-op where it
// exists as it should be.
func (q *stream) declare(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	var err error
	if q.js, err = jetstream.New(q.control.Conn); err != nil {
		return q.wrap(ctx, "open", err)
	}
	retention := jetstream.WorkQueuePolicy
	if q.retention == interest {
		retention = jetstream.InterestPolicy
	}
	_, err = q.js.CreateStream(within, jetstream.StreamConfig{
		Name: q.name, Subjects: []string{q.subject}, Retention: retention, Storage: jetstream.FileStorage,
		Replicas: q.replicas, Duplicates: q.dedupe,
	})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		err = fmt.Errorf("%w: it exists with other settings: open it with those, use another queue name, or delete it", err)
	}
	if err != nil {
		return q.wrap(ctx, "create the stream", err)
	}
	_, err = q.js.CreateConsumer(within, q.name, jetstream.ConsumerConfig{
		Durable: q.group, AckPolicy: jetstream.AckExplicitPolicy, DeliverPolicy: jetstream.DeliverAllPolicy,
		AckWait: q.ackWait, MaxAckPending: q.pending, MaxDeliver: -1,
	})
	if errors.Is(err, jetstream.ErrConsumerExists) {
		err = fmt.Errorf("%w with another ack-wait or pending: open it with those, or use another group", err)
	}
	return q.wrap(ctx, "create the consumer", err)
}

// syncsAlways asks the server how it syncs. Only one that exports its state to
// this account answers; another one has the default for all that is known.
func syncsAlways(ctx context.Context, nc *nats.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, "$SYS.REQ.SERVER.PING.VARZ", nil)
	if err != nil {
		return false
	}
	var reply struct {
		Data struct {
			JetStream struct {
				Config struct {
					SyncAlways bool `json:"sync_always"`
				} `json:"config"`
			} `json:"jetstream"`
		} `json:"data"`
	}
	return json.Unmarshal(m.Data, &reply) == nil && reply.Data.JetStream.Config.SyncAlways
}

func (q *stream) capabilities(syncs bool) queue.Capabilities {
	caps := queue.Capabilities{
		Guarantee:     queue.AtLeastOnce,
		Confirm:       queue.ConfirmOS,
		AckConfirmed:  true,
		Attempts:      queue.CountedByBroker,
		Groups:        q.retention == interest,
		Nack:          true,
		OrderedPerKey: true,
		Stored:        true,
		Durable:       true,
		Shared:        true,
	}
	switch {
	case q.replicas > 1:
		caps.Confirm = queue.ConfirmReplicas
	case syncs:
		caps.Confirm = queue.ConfirmDisk
	}
	return caps
}

func (q *stream) wrap(ctx context.Context, op string, err error) error {
	switch {
	case err == nil:
		return nil
	case q.closed.Load():
		return queue.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("nats %s %s: %w", op, q.name, err)
}

// reach waits for the handle's own connection, which may just come back.
func (q *stream) reach(ctx context.Context) error {
	if q.closed.Load() {
		return queue.ErrClosed
	}
	return q.control.await(ctx)
}

// Capabilities implements queue.Queue.
func (q *stream) Capabilities() queue.Capabilities { return q.caps }

// Backlog implements queue.Backlogger. It is that of this handle's group. After a
// kill the server counts as in flight what it had forgotten to be acked; what is
// in a work queue it does know.
func (q *stream) Backlog(ctx context.Context) (queue.Backlog, error) {
	within, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	if err := q.reach(within); err != nil {
		return queue.Backlog{}, q.wrap(ctx, "backlog", err)
	}
	c, err := q.js.Consumer(within, q.name, q.group) // asks for its state
	if err != nil {
		return queue.Backlog{}, q.wrap(ctx, "backlog", err)
	}
	i := c.CachedInfo()
	b := queue.Backlog{Ready: int64(i.NumPending), InFlight: int64(i.NumAckPending)}
	if q.retention == workQueue {
		s, err := q.js.Stream(within, q.name) // asks, too
		if err != nil {
			return queue.Backlog{}, q.wrap(ctx, "backlog", err)
		}
		all := int64(s.CachedInfo().State.Msgs)
		b.InFlight = min(b.InFlight, all)
		b.Ready = all - b.InFlight
	}
	return b, nil
}

// Delete implements queue.Queue. It removes the stream, and all its groups.
func (q *stream) Delete(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	if err := q.reach(within); err != nil {
		return q.wrap(ctx, "delete", err)
	}
	err := q.js.DeleteStream(within, q.name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return q.wrap(ctx, "delete", err)
}

// Close implements queue.Queue.
func (q *stream) Close() error {
	q.closed.Store(true)
	first, err := q.children.CloseAll()
	if first {
		q.control.Close()
	}
	return err
}

var _ queue.Backlogger = (*stream)(nil)
