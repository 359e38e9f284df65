// Package redisstreams is a queue on a Redis Stream with consumer groups. It
// needs Redis 7.0 or later.
//
// # Delivery
//
// At least once. An entry stays pending in its group until it is acked. Groups
// each get everything, consumers within one compete, and one consumer sees the
// entries in publish order; what comes again comes after newer ones. The broker
// counts: Delivery.Attempt is the entry's delivery count.
//
// A delivery is leased to its consumer for the time claim. A consumer extends the
// leases of all that it holds for as long as its process lives, so a slow handler
// is not robbed, and a handler that hangs for ever keeps its message. Once a
// lease has run out, because the process died, was stopped, or was cut off,
// another consumer takes the message over, and a late Ack is queue.ErrLeaseLost: the
// owner is checked in the same script as the ack. This does not fence what the
// handler did elsewhere; make effects unique by message id.
//
// Nack hands a message to nobody in particular (the consumer name "released") and
// writes a hint into a small stream that all waiting consumers also read, so
// that one of them takes it at once; Close gives back all that is unsettled in
// the same way. A lost hint only means that the message waits for the next claim.
//
// # URL
//
//	redis+streams://[user:password@]host[:6379][/db]?queue=orders
//
//	queue=NAME      the stream is stream:{NAME}; required
//	group=NAME      default workers. A new group begins with the oldest entry kept
//	claim=D         lease; 1s to 1h, default 30s. Make it three times the longest
//	                pause of a process, not of a handler
//	prefetch=N      entries read ahead of Receive, 1 to 10000; default 1: none
//	trim=D          how often acked entries are removed; 0s for never, default 10s
//	pipeline=N      most messages of concurrent publishes in one round trip; default 512
//	timeout=D       to connect, and for an answer; default 3s
//	preset=latency  prefetch=1
//	preset=throughput  prefetch=100
//
// Trimming removes only what every group has read and acked. The price: a group
// created later does not see what was trimmed before.
//
// # Crash behaviour
//
// What a killed consumer held comes again between claim and one and a half times
// claim later. A read whose reply is lost leaves its entries pending under the
// consumer's own name; it reads them again after it has reconnected. Each
// consumer has a name of its own, held by a lease as well. A dead one's name is
// deleted only when nothing is pending under it, since deleting it would delete
// its pending list. Leases run by the broker's clock: one that was down or stopped
// for longer than a lease may give what a live consumer holds to another.
//
// What a killed broker keeps is its own setting, which Open reads. With appendfsync
// everysec and a slow disk Redis answers up to two seconds before it writes, and a
// kill then loses those; always does not. A broker that comes
// back without the stream or the group (no append-only file, FLUSHALL) makes
// Receive return ErrRecreated once, and the queue goes on. After a power cut acks
// of the last moments can be undone: those messages come again, some of them as
// if for the first time.
//
// An entry that somebody else has deleted or trimmed while it was pending is acked
// away, and reported by Receive as a *GoneError.
//
// go-redis logs a failed dial to standard error. Its logger belongs to the whole
// process, so this package leaves it alone; a program may call redis.SetLogger.
package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/params"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

type streams struct {
	server   redisconn.Server
	control  *redis.Client
	stream   string
	group    string
	claim    time.Duration
	prefetch int
	trim     time.Duration
	pipeline int
	caps     queue.Capabilities
	children redisconn.Children
}

// Open opens the queue that u names. It verifies that the server answers, reads
// how it keeps its data, and creates the group if it is new.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	p := params.New(u)
	p.Preset(map[string]map[string]string{
		"latency":    {"prefetch": "1"},
		"throughput": {"prefetch": "100"},
	})
	server, err := redisconn.Parse(u, p)
	name := p.Name("queue", "")
	q := &streams{
		server:   server,
		stream:   "stream:{" + name + "}",
		group:    p.Name("group", "workers"),
		claim:    p.Duration("claim", 30*time.Second, time.Second, time.Hour),
		prefetch: p.Int("prefetch", 1, 1, 10000),
		trim:     p.Duration("trim", 10*time.Second, 0, time.Hour),
		pipeline: p.Int("pipeline", 512, 1, 10000),
	}
	if name == "" {
		err = errors.Join(err, errors.New("the parameter queue=NAME is missing"))
	}
	if err := errors.Join(err, p.Err()); err != nil {
		return nil, err
	}
	q.control = server.Client(2)
	facts, err := server.Inspect(ctx, q.control)
	if err == nil && facts.Version != "" && facts.Major() < 7 {
		err = fmt.Errorf("redis-streams needs Redis 7.0 or later, the server is %s", facts.Version)
	}
	if err == nil {
		err = q.ensureGroup(ctx, q.control)
	}
	if err != nil {
		return nil, errors.Join(err, q.control.Close())
	}
	q.caps = queue.Capabilities{
		Guarantee:     queue.AtLeastOnce,
		Confirm:       facts.Confirm(),
		AckConfirmed:  true,
		Attempts:      queue.CountedByBroker,
		Groups:        true,
		Nack:          true,
		OrderedPerKey: true,
		Stored:        true,
		Durable:       facts.Durable(),
		Shared:        true,
		LeaseFenced:   true,
	}
	return q, nil
}

// The keys of a group stand beside the stream and hash to the same slot.
func (q *streams) hints(group string) string  { return q.stream + ":hints:" + group }
func (q *streams) leases(group string) string { return q.stream + ":leases:" + group }

func (q *streams) keys() []string {
	return []string{q.stream, q.hints(q.group), q.leases(q.group)}
}

// ensureGroup creates the group, from the oldest entry, where it is not there.
func (q *streams) ensureGroup(ctx context.Context, c redis.Cmdable) error {
	for _, g := range [][2]string{{q.stream, "0"}, {q.hints(q.group), "$"}} {
		err := c.XGroupCreateMkStream(ctx, g[0], q.group, g[1]).Err()
		if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
			return fmt.Errorf("create the group %s: %w", q.group, err)
		}
	}
	return nil
}

// Capabilities implements queue.Queue.
func (q *streams) Capabilities() queue.Capabilities { return q.caps }

// Publisher implements queue.Queue.
func (q *streams) Publisher(ctx context.Context) (queue.Publisher, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var p *redisconn.Publisher[*redis.StringCmd]
	p = redisconn.NewPublisher(q.server.Client(2), q.pipeline, q.add, redisconn.CommandSize,
		redisconn.Pipeline, func() { q.children.Remove(p) })
	if err := q.children.Add(p); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// The fields of an entry. Headers have a prefix, so that one named "id" is no id.
const (
	fieldID     = "id"
	fieldKey    = "key"
	fieldBody   = "body"
	fieldHeader = "h."
)

func (q *streams) add(m queue.Message) *redis.StringCmd {
	args := make([]any, 0, 9+2*len(m.Headers))
	// The body is copied: it may change once Publish has returned, which can be
	// before the command has gone.
	args = append(args, "xadd", q.stream, "*", fieldID, m.ID, fieldBody, append([]byte(nil), m.Body...))
	if m.Key != "" {
		args = append(args, fieldKey, m.Key)
	}
	for name, value := range m.Headers {
		args = append(args, fieldHeader+name, value)
	}
	return redis.NewStringCmd(context.Background(), args...)
}

// Backlog implements queue.Backlogger.
func (q *streams) Backlog(ctx context.Context) (queue.Backlog, error) {
	groups, err := q.control.XInfoGroups(ctx, q.stream).Result()
	if noSuchKey(err) {
		return queue.Backlog{Dead: -1}, nil
	}
	if err != nil {
		return queue.Backlog{}, q.wrap("count the backlog", err)
	}
	b := queue.Backlog{Dead: -1}
	for _, g := range groups {
		if g.Name != q.group {
			continue
		}
		pending, err := q.control.XPending(ctx, q.stream, q.group).Result()
		if err != nil {
			return queue.Backlog{}, q.wrap("count what is pending", err)
		}
		// What was given back is pending to the broker, and ready to us.
		free := pending.Consumers[released]
		b.InFlight = pending.Count - free
		if b.Ready, err = q.lag(ctx, g); err != nil {
			return queue.Backlog{}, q.wrap("count what is unread", err)
		}
		if b.Ready >= 0 {
			b.Ready += free
		}
		return b, nil
	}
	// Without the group, all that is kept waits for it.
	b.Ready, err = q.control.XLen(ctx, q.stream).Result()
	if err != nil {
		return queue.Backlog{}, q.wrap("count the backlog", err)
	}
	return b, nil
}

// lag is how many entries the group has not read, -1 where the broker has lost
// count, which it does when entries were deleted. That it has read all is known
// even then.
func (q *streams) lag(ctx context.Context, g redis.XInfoGroup) (int64, error) {
	if g.Lag >= 0 {
		return g.Lag, nil
	}
	info, err := q.control.XInfoStream(ctx, q.stream).Result()
	if err == nil && info.LastGeneratedID == g.LastDeliveredID {
		return 0, nil
	}
	return -1, err
}

// Delete implements queue.Queue. It removes the stream with all its groups.
func (q *streams) Delete(ctx context.Context) error {
	keys := q.keys()
	groups, err := q.control.XInfoGroups(ctx, q.stream).Result()
	if err != nil && !noSuchKey(err) {
		return q.wrap("delete", err)
	}
	for _, g := range groups {
		keys = append(keys, q.hints(g.Name), q.leases(g.Name))
	}
	if err := q.control.Unlink(ctx, keys...).Err(); err != nil {
		return q.wrap("delete", err)
	}
	return nil
}

func noSuchKey(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "ERR no such key")
}

func (q *streams) wrap(op string, err error) error {
	if errors.Is(err, redis.ErrClosed) {
		return queue.ErrClosed
	}
	return fmt.Errorf("redis-streams %s: %w", op, err)
}

// Close implements queue.Queue.
func (q *streams) Close() error {
	first, err := q.children.CloseAll()
	if !first {
		return nil
	}
	return errors.Join(err, q.control.Close())
}
