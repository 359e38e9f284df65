// Package redissharded is a queue on several Redis Streams: one logical stream,
// partitioned by the hash of the message's key, with a consumer group on each
// partition. It needs Redis 7.0 or later.
//
// # Delivery
//
// At least once. A message goes to the partition of its key, or of its id where it
// has no key; an entry stays pending until it is acked. Groups each get everything,
// consumers within one compete, for partitions and not for messages: each
// partition is leased to one consumer of the group at a time, so the messages of
// one key come in publish order although consumers compete, which one stream with
// a group cannot say. Consumers beyond the number of partitions wait idle.
//
// When a consumer comes, those that have more than their share stop reading what
// is beyond it, and give a partition up once all that they were delivered of it
// is settled; a handler that hangs for ever so keeps its whole partition. When one
// goes, its unsettled messages stay pending, and come first, in order, to whoever
// gets the partition: what comes again does not come after newer ones of its key.
//
// The lease belongs to the consumer's name, and is checked in the same script as
// the ack: once another consumer has the partition a late Ack is
// queue.ErrLeaseLost. This does not fence what the handler did elsewhere; make
// effects unique by message id.
//
// There is no Nack, which would break the order, and attempts are not counted.
//
// # URL
//
//	redis+sharded://[user:password@]host[:6379][/db]?queue=orders
//
//	queue=NAME      the streams are sharded:{NAME}:0 and so on; required
//	partitions=N    1 to 256; default 4. A queue that exists keeps its number, and
//	                another one is an error
//	group=NAME      default workers. A new group begins with the oldest entry kept
//	claim=D         lease; 1s to 1h, default 10s. Make it three times the longest
//	                pause of a process, not of a handler
//	count=N         most entries of one read of each partition, which are read ahead of
//	                Receive, 1 to 10000; default 10
//	maxlen=N        about how many entries a partition keeps; default 0: all. Beyond it
//	                the oldest go, whether they were read or not
//	trim=D          how often acked entries are removed; 0s for never, default 10s
//	pipeline=N      most messages of concurrent publishes in one round trip; default 512
//	timeout=D       to connect, and for an answer; default 3s
//	retries=N       go-redis' own, behind everybody's back: a publish whose reply is
//	                lost is stored twice; 0 to 10, default 0
//	preset=latency  count=1
//	preset=throughput  count=100
//
// Trimming removes only what every group has read and acked. A group that is
// created later does not see it.
//
// # Crash behaviour
//
// The partitions of a killed consumer are taken over once its lease has run out,
// with what it had not acked; until then they stand still. A read whose reply is
// lost leaves its entries pending; they are read again once the connection is back.
// Leases run by the broker's clock: a broker that was down or stopped for longer
// than a lease gives partitions to whoever asks first.
//
// What a killed broker keeps is its own setting, which Open reads. A broker that
// comes back empty makes Receive return ErrRecreated once, and the queue goes on.
//
// go-redis logs a failed dial to standard error. Its logger belongs to the whole
// process, so this package leaves it alone; a program may call redis.SetLogger.
package redissharded

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/params"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

type sharded struct {
	*redisconn.Base
	streams []string // by partition
	group   string
	claim   time.Duration
	count   int
	trim    time.Duration
	options []any // of XADD
}

// Open opens the queue that u names. It verifies that the server answers, reads
// how it keeps its data, and creates the group if it is new.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	p := params.New(u)
	p.Preset(map[string]map[string]string{
		"latency":    {"count": "1"},
		"throughput": {"count": "100"},
	})
	q := &sharded{
		group: p.Name("group", "workers"),
		claim: p.Duration("claim", 10*time.Second, time.Second, time.Hour),
		count: p.Int("count", 10, 1, 10000),
		trim:  p.Duration("trim", 10*time.Second, 0, time.Hour),
	}
	partitions := p.Int("partitions", 4, 1, 256)
	maxlen := p.Int("maxlen", 0, 0, 1_000_000_000)
	if maxlen > 0 {
		q.options = []any{"maxlen", "~", maxlen}
	}
	var err error
	if q.Base, err = redisconn.Open(ctx, "redis-sharded", u, p); err != nil {
		return nil, err
	}
	if err = q.Needs(7, "redis-sharded"); err == nil {
		err = q.create(ctx, partitions, u.Query().Has("partitions"))
	}
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	q.Caps = queue.Capabilities{
		Guarantee:     queue.AtLeastOnce,
		Confirm:       q.Facts.Confirm(),
		AckConfirmed:  true,
		Attempts:      queue.NotCounted,
		Groups:        true,
		OrderedPerKey: true,
		Stored:        true,
		Durable:       q.Facts.Durable(),
		Shared:        true,
		DropsOldest:   maxlen > 0,
		LeaseFenced:   true,
	}
	return q, nil
}

// The keys of a queue hash to the same slot.
func (q *sharded) key(what string) string      { return "sharded:{" + q.Name + "}:" + what }
func (q *sharded) owners(group string) string  { return q.key("owners:" + group) }
func (q *sharded) members(group string) string { return q.key("members:" + group) }
func (q *sharded) partitionsKey() string       { return q.key("partitions") }

// create agrees on the number of partitions with whoever opened the queue first,
// and makes the group on each.
func (q *sharded) create(ctx context.Context, partitions int, given bool) error {
	if err := q.Control.SetNX(ctx, q.partitionsKey(), partitions, 0).Err(); err != nil {
		return fmt.Errorf("agree on the number of partitions: %w", err)
	}
	n, err := q.Control.Get(ctx, q.partitionsKey()).Int()
	if err != nil {
		return fmt.Errorf("read the number of partitions: %w", err)
	}
	if given && n != partitions {
		return fmt.Errorf("the queue %s has %d partitions, not %d: leave partitions= out, or delete the queue first", q.Name, n, partitions)
	}
	q.streams = make([]string, n)
	for i := range q.streams {
		q.streams[i] = q.key(strconv.Itoa(i))
	}
	return q.ensureGroups(ctx, q.Control)
}

// ensureGroups creates the group, from the oldest entry, where it is not there.
func (q *sharded) ensureGroups(ctx context.Context, c *redis.Client) error {
	pipe := c.Pipeline()
	cmds := []redis.Cmder{pipe.SetNX(ctx, q.partitionsKey(), len(q.streams), 0)}
	for _, s := range q.streams {
		cmds = append(cmds, pipe.XGroupCreateMkStream(ctx, s, q.group, "0"))
	}
	_, _ = pipe.Exec(ctx) // the first error of those that each command has
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
			return fmt.Errorf("create the group %s: %w", q.group, err)
		}
	}
	return nil
}

// partition is that of a message. Every publisher must agree on it.
func (q *sharded) partition(m queue.Message) int {
	text := m.Key
	if text == "" {
		text = m.ID
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // it never fails
	return int(h.Sum32() % uint32(len(q.streams)))
}

// Publisher implements queue.Queue.
func (q *sharded) Publisher(ctx context.Context) (queue.Publisher, error) {
	return redisconn.NewPublisher(ctx, q.Base, q.adds, redisconn.CommandSize, redisconn.Pipeline)
}

func (q *sharded) adds(msgs []queue.Message) []*redis.StringCmd {
	return redisconn.Adds(msgs, func(m queue.Message) *string { return &q.streams[q.partition(m)] }, q.options...)
}

// Backlog implements queue.Backlogger. What a consumer that went away had not
// settled counts as in flight.
func (q *sharded) Backlog(ctx context.Context) (queue.Backlog, error) {
	b := queue.Backlog{Dead: -1}
	for _, s := range q.streams {
		groups, err := q.Control.XInfoGroups(ctx, s).Result()
		if err != nil && !redisconn.NoSuchKey(err) {
			return b, q.Wrap("count the backlog", err)
		}
		lag, pending, known := int64(0), int64(0), false
		for _, g := range groups {
			if g.Name == q.group {
				lag, pending, known = g.Lag, g.Pending, true
			}
		}
		if !known || lag < 0 {
			// Without the group, all that is kept waits for it. Where entries were
			// trimmed Redis may lose count, except that all were read.
			info, err := q.Control.XInfoStream(ctx, s).Result()
			if err != nil && !redisconn.NoSuchKey(err) {
				return b, q.Wrap("count the backlog", err)
			}
			switch {
			case err != nil:
				lag = 0
			case !known:
				lag = info.Length
			case lastRead(groups, q.group) == info.LastGeneratedID:
				lag = 0
			}
		}
		if b.Ready >= 0 && lag >= 0 {
			b.Ready += lag
		} else {
			b.Ready = -1
		}
		b.InFlight += pending
	}
	return b, nil
}

func lastRead(groups []redis.XInfoGroup, name string) string {
	for _, g := range groups {
		if g.Name == name {
			return g.LastDeliveredID
		}
	}
	return ""
}

// Delete implements queue.Queue. It removes the partitions with all their groups.
func (q *sharded) Delete(ctx context.Context) error {
	keys := append([]string{q.partitionsKey(), q.owners(q.group), q.members(q.group)}, q.streams...)
	groups, err := q.Control.XInfoGroups(ctx, q.streams[0]).Result()
	if err != nil && !redisconn.NoSuchKey(err) {
		return q.Wrap("delete", err)
	}
	for _, g := range groups {
		keys = append(keys, q.owners(g.Name), q.members(g.Name))
	}
	return q.Unlink(ctx, keys...)
}
