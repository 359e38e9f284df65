// Package redisxread is a queue on a Redis Stream that is read by XREAD, without
// a consumer group.
//
// # Delivery
//
// Every consumer gets every message; they do not compete. What a consumer has
// read is nowhere in Redis unless somebody writes it down, and that is the whole
// difference between the two ways to say where a read begins:
//
//	from=tracked  a read goes on after the last entry that this consumer has read.
//	              Up to which entry all are acked is kept in Redis under the
//	              consumer's name, and a consumer that is opened under the name
//	              begins there; a new name begins at the oldest entry. At least
//	              once. An Ack beyond an unacked message is nil and remembered
//	              here, and reaches Redis with the Ack that closes the gap, as with
//	              Kafka: if the consumer ends before that, what was acked beyond
//	              the gap comes again.
//	from=$        every read begins at the end of the stream, so it waits for the
//	              next entry and gets that one. What was added between two reads is
//	              skipped and nobody says so, although every publish was accepted:
//	              at most once, and less than that for whoever is slower than the
//	              publisher.
//
// Two consumers of one name are no group: each gets everything, and the place of
// the name is that of the faster one, since it never goes back. A slower one that
// dies is then not given again what the faster one has acked.
//
// There is no Nack, and attempts are not counted. Nothing says when an entry may
// be removed: the stream grows, unless maxlen bounds it, which removes the oldest
// entries whether they were read or not.
//
// # URL
//
//	redis+xread://[user:password@]host[:6379][/db]?queue=orders
//
//	queue=NAME      the stream is xread:{NAME}; required
//	from=tracked    or $, see above; default tracked
//	name=NAME       whose place is tracked; default reader
//	count=N         most entries of one read, 1 to 10000; default 100
//	maxlen=N        about how many entries are kept; default 0: all
//	pipeline=N      most messages of concurrent publishes in one round trip; default 512
//	timeout=D       to connect, and for an answer; default 3s
//	retries=N       go-redis' own, behind everybody's back: a publish whose reply is
//	                lost is stored twice; 0 to 10, default 0
//	preset=latency  count=10
//	preset=throughput  count=1000
//
// # Crash behaviour
//
// With from=tracked what a killed consumer had not acked comes again to the next
// one of its name, in order. With from=$ it is gone, and so is everything that is
// published until another consumer reads.
//
// What a killed broker keeps is its own setting, which Open reads; stream and
// places are kept or lost together. A consumer that was open over a crash that
// lost the stream goes on after the last id that it has seen, which new entries
// follow as long as the broker's clock does not go back.
//
// go-redis logs a failed dial to standard error. Its logger belongs to the whole
// process, so this package leaves it alone; a program may call redis.SetLogger.
package redisxread

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/params"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

type xread struct {
	*redisconn.Base
	stream  string
	places  string // a hash: where each name is
	name    string
	tracked bool
	count   int
	options []any // of XADD
}

// tracked is a queue that knows what is left for its name.
type tracked struct{ *xread }

// Open opens the queue that u names. It verifies that the server answers and
// reads how it keeps its data.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	p := params.New(u)
	p.Preset(map[string]map[string]string{
		"latency":    {"count": "10"},
		"throughput": {"count": "1000"},
	})
	q := &xread{
		tracked: p.OneOf("from", "tracked", "$") == "tracked",
		name:    p.Name("name", "reader"),
		count:   p.Int("count", 100, 1, 10000),
	}
	if n := p.Int("maxlen", 0, 0, 1_000_000_000); n > 0 {
		q.options = []any{"maxlen", "~", n}
	}
	if !q.tracked && u.Query().Has("name") {
		return nil, errors.New("name says whose place is tracked, and from=$ tracks none: leave it out, or use from=tracked")
	}
	var err error
	if q.Base, err = redisconn.Open(ctx, "redis-xread", u, p); err != nil {
		return nil, err
	}
	q.stream = "xread:{" + q.Name + "}"
	q.places = q.stream + ":places"
	q.Caps = q.promises()
	if q.tracked {
		return tracked{q}, nil
	}
	return q, nil
}

func (q *xread) promises() queue.Capabilities {
	c := queue.Capabilities{
		Guarantee:     queue.AtMostOnce,
		Confirm:       queue.ConfirmMemory, // a message is kept, and nobody is ever given it
		Attempts:      queue.NotCounted,
		Broadcast:     true,
		OrderedPerKey: true,
		Shared:        true,
		Skips:         true,
	}
	if q.tracked {
		c.Guarantee, c.Confirm, c.AckConfirmed = queue.AtLeastOnce, q.Facts.Confirm(), true
		c.Stored, c.Durable, c.Skips = true, q.Facts.Durable(), false
		c.DropsOldest = len(q.options) > 0
	}
	return c
}

// Publisher implements queue.Queue.
func (q *xread) Publisher(ctx context.Context) (queue.Publisher, error) {
	return redisconn.NewPublisher(ctx, q.Base, q.adds, redisconn.CommandSize, redisconn.Pipeline)
}

func (q *xread) adds(msgs []queue.Message) []*redis.StringCmd {
	return redisconn.Adds(msgs, func(queue.Message) *string { return &q.stream }, q.options...)
}

// place is how far a name has got.
type place struct {
	id string // of the last entry up to which all are acked
	n  int64  // how many entries that are, from the stream's first on
}

// advanceScript takes the hash, and a name with its id and number. A place never
// goes back.
var advanceScript = redis.NewScript(`
local function parts(s)
	local ms, seq = s:match('^(%d+)-(%d+)')
	return tonumber(ms), tonumber(seq)
end
local old = redis.call('HGET', KEYS[1], ARGV[1])
if old then
	local ms, seq = parts(ARGV[2])
	local oldms, oldseq = parts(old)
	if ms < oldms or ms == oldms and seq <= oldseq then return 0 end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. ARGV[3])
return 1`)

func (q *xread) advance(ctx context.Context, c *redis.Client, to place) error {
	return advanceScript.Run(ctx, c, []string{q.places}, q.name, to.id, to.n).Err()
}

// place is where the name is; a new one is before the first entry.
func (q *xread) place(ctx context.Context, c *redis.Client) (place, error) {
	text, err := c.HGet(ctx, q.places, q.name).Result()
	if errors.Is(err, redis.Nil) {
		return place{id: "0-0"}, nil
	}
	if err != nil {
		return place{}, err
	}
	id, number, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || !strings.Contains(id, "-") {
		return place{}, fmt.Errorf("field %s of %s is %q: want an id and a number: delete the field to begin anew", q.name, q.places, text)
	}
	return place{id, n}, nil
}

// Backlog implements queue.Backlogger. What is delivered and not acked counts as
// ready: Redis does not know the difference. Where entries are trimmed it cannot
// tell how many are left.
func (q tracked) Backlog(ctx context.Context) (queue.Backlog, error) {
	b := queue.Backlog{Ready: -1, InFlight: -1, Dead: -1}
	at, err := q.place(ctx, q.Control)
	if err != nil {
		return b, q.Wrap("count the backlog", err)
	}
	n, err := q.Control.XLen(ctx, q.stream).Result()
	if err != nil {
		return b, q.Wrap("count the backlog", err)
	}
	if len(q.options) == 0 && n >= at.n {
		b.Ready = n - at.n
	}
	return b, nil
}

// Delete implements queue.Queue. It removes the stream with the places of all names.
func (q *xread) Delete(ctx context.Context) error {
	return q.Unlink(ctx, q.stream, q.places)
}
