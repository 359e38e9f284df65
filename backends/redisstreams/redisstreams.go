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
// With noack=true delivery is at most once: the broker forgets an entry as it hands
// it over. Ack then settles in this process only, Nack is queue.ErrUnsupported and
// attempts are not counted. What a killed consumer held is gone, and so is a read
// whose reply is lost. Close gives back what Receive has not taken.
//
// With maxlen the stream holds so many entries and no more: each publish beyond
// drops the oldest, read or not, and is accepted like any other. Nobody is told but
// a consumer that had a dropped one pending.
//
// The queue is a queue.Replayer: a replay reads what is on the stream, whatever a
// group has acked, until it is trimmed: trim=0s, in all that open the queue, keeps
// everything. An offset is an entry's id, as 1700000000000-0.
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
//	noack=true      at most once, see above; default false
//	maxlen=N        entries that the stream holds, 1 to 1000000000; default 0: no
//	                bound. Whoever publishes enforces it, so let all of them say it
//	trim=D          how often acked entries are removed; 0s for never, default 10s
//	pipeline=N      most messages of concurrent publishes in one round trip; default 512
//	timeout=D       to connect, and for an answer; default 3s
//	retries=N       go-redis sends a command that failed again, up to so often, and
//	                says nothing of it; 0 to 10, default 0. See Crash behaviour
//	sentinel=H:P,H:P  Sentinels, with master=NAME: the server is the one that they call
//	                so, and the URL's host is not used. Not durable then without wait
//	wait=N          a message is accepted once N replicas have it too, and unknown where
//	                they have not within a third of timeout; default 0
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
// With retries go-redis sends a publish whose reply was lost again, and it is
// stored twice without an error. A script that settles and is sent again finds
// nothing pending: that is ErrLeaseLost although the ack was done.
//
// go-redis logs a failed dial to standard error. Its logger belongs to the whole
// process, so this package leaves it alone; a program may call redis.SetLogger.
package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/params"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

type streams struct {
	*redisconn.Base
	stream   string
	group    string
	claim    time.Duration
	prefetch int
	trim     time.Duration
	noAck    bool
	maxLen   int // 0: no bound
}

// Open opens the queue that u names. It verifies that the server answers, reads
// how it keeps its data, and creates the group if it is new.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	p := params.New(u)
	p.Preset(map[string]map[string]string{
		"latency":    {"prefetch": "1"},
		"throughput": {"prefetch": "100"},
	})
	q := &streams{
		group:    p.Name("group", "workers"),
		claim:    p.Duration("claim", 30*time.Second, time.Second, time.Hour),
		prefetch: p.Int("prefetch", 1, 1, 10000),
		trim:     p.Duration("trim", 10*time.Second, 0, time.Hour),
		noAck:    p.Bool("noack", false),
		maxLen:   p.Int("maxlen", 0, 1, 1_000_000_000),
	}
	var err error
	if q.Base, err = redisconn.Open(ctx, "redis-streams", u, p); err != nil {
		return nil, err
	}
	q.stream = "stream:{" + q.Name + "}"
	if err = q.Needs(7, "redis-streams"); err == nil {
		err = q.ensureGroup(ctx, q.Control)
	}
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	q.Caps = queue.Capabilities{
		Guarantee:     queue.AtLeastOnce,
		Confirm:       q.Facts.Confirm(),
		AckConfirmed:  true,
		Attempts:      queue.CountedByBroker,
		Groups:        true,
		Nack:          true,
		OrderedPerKey: true,
		Stored:        true,
		Durable:       q.Facts.Durable(),
		Shared:        true,
		LeaseFenced:   true,
		Replay:        true,
		DropsOldest:   q.maxLen > 0,
	}
	if q.noAck {
		q.Caps.Guarantee, q.Caps.Attempts = queue.AtMostOnce, queue.NotCounted
		q.Caps.AckConfirmed, q.Caps.Nack, q.Caps.LeaseFenced = false, false, false
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

// The fields of an entry. Headers have a prefix, so that one named "id" is no id.
const (
	fieldID     = "id"
	fieldKey    = "key"
	fieldBody   = "body"
	fieldHeader = "h."
)

// Publisher implements queue.Queue.
func (q *streams) Publisher(ctx context.Context) (queue.Publisher, error) {
	return redisconn.NewPublisher(ctx, q.Base, q.adds, redisconn.CommandSize, redisconn.Pipeline)
}

// adds makes the commands that add messages; what is not a command costs a few
// allocations for all. The bodies are copied: they may change once Publish has
// returned, which can be before the commands have gone.
func (q *streams) adds(msgs []queue.Message) []*redis.StringCmd {
	size, fields := 0, 0
	for i := range msgs {
		size += len(msgs[i].Body)
		fields += 12 + 2*len(msgs[i].Headers)
	}
	texts := slices.Clone(msgs)
	bodies, values := make([]byte, 0, size), make([]redisconn.Value, len(msgs))
	cmds, args := make([]*redis.StringCmd, len(msgs)), make([]any, 0, fields)
	for i := range texts {
		m := &texts[i]
		from := len(bodies)
		bodies = append(bodies, m.Body...)
		values[i], m.Body = bodies[from:], nil
		first := len(args)
		args = q.fields(append(args, "xadd", &q.stream), m, &values[i])
		cmds[i] = redis.NewStringCmd(context.Background(), args[first:len(args):len(args)]...)
	}
	return cmds
}

// fields appends the arguments after the stream's key. The message stays the
// caller's to keep, and its body is not looked at.
func (q *streams) fields(args []any, m *queue.Message, body *redisconn.Value) []any {
	if q.maxLen > 0 {
		args = append(args, "maxlen", "=", q.maxLen)
	}
	args = append(args, "*", fieldID, &m.ID, fieldBody, body)
	if m.Key != "" {
		args = append(args, fieldKey, &m.Key)
	}
	for name, value := range m.Headers {
		args = append(args, fieldHeader+name, value)
	}
	return args
}

// Backlog implements queue.Backlogger.
func (q *streams) Backlog(ctx context.Context) (queue.Backlog, error) {
	groups, err := q.Control.XInfoGroups(ctx, q.stream).Result()
	if redisconn.NoSuchKey(err) {
		return queue.Backlog{Dead: -1}, nil
	}
	if err != nil {
		return queue.Backlog{}, q.Wrap("count the backlog", err)
	}
	b := queue.Backlog{Dead: -1}
	for _, g := range groups {
		if g.Name != q.group {
			continue
		}
		pending, err := q.Control.XPending(ctx, q.stream, q.group).Result()
		if err != nil {
			return queue.Backlog{}, q.Wrap("count what is pending", err)
		}
		// What was given back is pending to the broker, and ready to us.
		free := pending.Consumers[released]
		b.InFlight = pending.Count - free
		if b.Ready, err = q.lag(ctx, g); err != nil {
			return queue.Backlog{}, q.Wrap("count what is unread", err)
		}
		if b.Ready >= 0 {
			b.Ready += free
		}
		return b, nil
	}
	// Without the group, all that is kept waits for it.
	b.Ready, err = q.Control.XLen(ctx, q.stream).Result()
	if err != nil {
		return queue.Backlog{}, q.Wrap("count the backlog", err)
	}
	return b, nil
}

// lag is how many entries the group has not read, -1 where the broker has lost
// count, which it does when entries were deleted. That it has read all is known
// even then. What maxlen has dropped unread the broker may count for ever: then it
// is at most as many as there are entries, read ones that are still kept included.
func (q *streams) lag(ctx context.Context, g redis.XInfoGroup) (int64, error) {
	if g.Lag >= 0 && q.maxLen == 0 {
		return g.Lag, nil
	}
	info, err := q.Control.XInfoStream(ctx, q.stream).Result()
	if err == nil && info.LastGeneratedID == g.LastDeliveredID {
		return 0, nil
	}
	return min(g.Lag, info.Length), err
}

// Delete implements queue.Queue. It removes the stream with all its groups.
func (q *streams) Delete(ctx context.Context) error {
	keys := q.keys()
	groups, err := q.Control.XInfoGroups(ctx, q.stream).Result()
	if err != nil && !redisconn.NoSuchKey(err) {
		return q.Wrap("delete", err)
	}
	for _, g := range groups {
		keys = append(keys, q.hints(g.Name), q.leases(g.Name))
	}
	return q.Unlink(ctx, keys...)
}
