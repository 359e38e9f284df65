// Package rediszset is a queue on Redis Sorted Sets: the score of a message is the
// time at which it may be delivered. It needs Redis 6.2 or later.
//
// # Delivery
//
// At least once. A script takes the messages of the lowest scores that are due, and
// moves them to a second set, where the score is the time at which they come again;
// an ack removes them. Consumers compete. That time, claim, is not extended: a handler
// that is slower, with all that its consumer took before it, is robbed while it is
// alive. Its late Ack or Nack is queue.ErrLeaseLost, as the score is no longer its
// own. So is an Ack that is tried again after its first answer was lost, and that
// answer was yes.
//
// A member of a set is unique, and equal scores are ordered by the member. So each
// begins with a number that the broker counts: two copies of a message are two, and
// what is due in the same millisecond comes in publish order. What is given back, by
// Nack, Close or because its time was up, comes before all others, in publish order.
// One consumer sees the messages of a key in publish order, unless their delays
// differ, or the broker's clock is set back. The broker counts: Delivery.Attempt is
// how often a message was taken.
//
// A set cannot be waited for by what is due. Consumers wait on a small list, the
// bell, which a publish rings once for each message, at most until the next message
// is due, and at most a second: so late is a message whose bell was lost.
//
// # URL
//
//	redis+zset://[user:password@]host[:6379][/db]?queue=orders
//
//	queue=NAME      the set is zset:{NAME}; required
//	delay=D         until a published message may be delivered; 0s to 24h, default 0s.
//	                A message's header "delay", a duration such as 1500ms, says
//	                otherwise; with any other text it is rejected
//	claim=D         until what was taken and not acked comes again; 1s to 1h, default
//	                30s
//	batch=N         most messages taken in one round trip, 1 to 1000; default 100
//	pipeline=N      most messages of concurrent publishes in one round trip; default 512
//	timeout=D       to connect, and for an answer; default 3s
//	retries=N       this, wait=N, sentinel=H:P,… and master=NAME are as with redislist
//	preset=latency  batch=1
//	preset=throughput  batch=1000
//
// # Crash behaviour
//
// What a killed consumer held comes again claim after it was taken; so does what was
// taken by a script whose reply was lost. No consumer has to look after another's
// messages: whoever takes next finds them. Times run by the broker's clock: one that
// was down or stopped for longer than claim gives what a live consumer holds to
// another. What a killed broker keeps is its own setting, as with redislist.
package rediszset

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"queuelab/backends/internal/params"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

// Header says of one message how long it is to be delayed, as a Go duration.
const Header = "delay"

const longestDelay = 24 * time.Hour

type zset struct {
	*redisconn.Base
	key   string
	delay time.Duration
	claim time.Duration
	batch int
}

// Open opens the queue that u names. It verifies that the server answers and
// reads how it keeps its data.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	p := params.New(u)
	p.Preset(map[string]map[string]string{
		"latency":    {"batch": "1"},
		"throughput": {"batch": "1000"},
	})
	q := &zset{
		delay: p.Duration("delay", 0, 0, longestDelay),
		claim: p.Duration("claim", 30*time.Second, time.Second, time.Hour),
		batch: p.Int("batch", 100, 1, 1000),
	}
	var err error
	if q.Base, err = redisconn.Open(ctx, "redis-zset", u, p); err != nil {
		return nil, err
	}
	q.key = "zset:{" + q.Name + "}"
	q.Caps = q.HeldMessages()
	return q, nil
}

// keys are the set, what was taken, how often each message was, the bell, and the
// number of the last message. They hash to the same slot.
func (q *zset) keys() []string {
	return []string{q.key, q.key + ":taken", q.key + ":attempts", q.bell(), q.key + ":last"}
}

func (q *zset) bell() string { return q.key + ":bell" }

// delayOf is the delay of one message.
func (q *zset) delayOf(m queue.Message) (time.Duration, error) {
	text, ok := m.Headers[Header]
	if !ok {
		return q.delay, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > longestDelay {
		return 0, queue.Reject(fmt.Errorf("message %s: header %s=%q: want a duration from 0s to %v, such as 1500ms", m.ID, Header, text, longestDelay))
	}
	return d, nil
}

// Publisher implements queue.Queue.
func (q *zset) Publisher(ctx context.Context) (queue.Publisher, error) {
	return redisconn.NewPublisher(ctx, q.Base, q.encode, func(d delayed) int { return redisconn.ValueSize(d.value) }, q.add)
}

// Consumer implements queue.Queue.
func (q *zset) Consumer(ctx context.Context) (queue.Consumer, error) {
	return redisconn.NewHolder(ctx, q.Base, &consumer{q: q}, time.Hour) // there is nothing to tend
}

// Backlog implements queue.Backlogger. What is delayed waits, too.
func (q *zset) Backlog(ctx context.Context) (queue.Backlog, error) {
	return q.Counts(ctx, countScript, q.keys()...)
}

// Delete implements queue.Queue.
func (q *zset) Delete(ctx context.Context) error { return q.Unlink(ctx, q.keys()...) }
