// Package redispriority is a queue on several Redis Lists, one for each level of
// priority: LPUSH onto the level's list, and one BRPOP over all of them.
//
// # Delivery
//
// At most once, as with redislist: BRPOP removes what it delivers, Ack only settles
// in this process and never fails, Nack is queue.ErrUnsupported. Consumers compete.
//
// BRPOP looks at the lists from the most urgent to the least, and takes the oldest
// message of the first that has any. So within a level the order is that of
// publishing, and between levels the urgent overtakes: a message waits for all that
// is more urgent, also for what is published after it, and for ever where that
// never ends. A consumer that already waits on empty lists is served by whichever is
// filled first.
//
// With by=key all messages of a key have one level, and one consumer sees them in
// publish order. With by=header a key's messages may have several, and overtake each
// other: the queue then does not claim their order.
//
// # URL
//
//	redis+priority://[user:password@]host[:6379][/db]?queue=orders
//
//	queue=NAME      the lists are priority:{NAME}:LEVEL; required
//	levels=A,B,…    most urgent first, 1 to 16 names; default high,normal,low.
//	                Publishers and consumers must agree
//	by=header       the header "priority" names the level; the default
//	by=key          what stands before the first colon of the key names it, as in
//	                high:42
//	pipeline=N      most messages of concurrent publishes in one round trip; default 512
//	timeout=D       to connect, and for an answer; default 3s
//	retries=N       this, wait=N, sentinel=H:P,… and master=NAME are as with redislist
//	preset=latency  pipeline=512
//	preset=throughput  pipeline=2000
//
// A message whose level is not named, or is none of these, has the last one.
//
// # Crash behaviour
//
// A consumer that is killed loses the one message that it had popped, and one is
// lost with each connection that breaks while its reply is under way, as with
// redislist. A Publish over several levels is one command for each: after an error
// some levels may have been accepted and others not, which the error tells. What a
// killed broker keeps is its own setting, as with redislist.
package redispriority

import (
	"context"
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

// Header names a message's level with by=header.
const Header = "priority"

type priority struct {
	*redisconn.Base
	levels []string // the most urgent first
	keys   []string // of the lists, one for each level
	byKey  bool
}

// Open opens the queue that u names. It verifies that the server answers and
// reads how it keeps its data.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	p := params.New(u)
	p.Preset(map[string]map[string]string{
		"latency":    {"pipeline": "512"},
		"throughput": {"pipeline": "2000"},
	})
	q := &priority{
		levels: strings.Split(p.String("levels", "high,normal,low"), ","),
		byKey:  p.OneOf("by", "header", "key") == "key",
	}
	if err := check(q.levels); err != nil {
		return nil, err
	}
	var err error
	if q.Base, err = redisconn.Open(ctx, "redis-priority", u, p); err != nil {
		return nil, err
	}
	for _, level := range q.levels {
		q.keys = append(q.keys, "priority:{"+q.Name+"}:"+level)
	}
	q.Caps = q.PoppedLists()
	q.Caps.OrderedPerKey = q.byKey || len(q.levels) == 1
	return q, nil
}

func check(levels []string) error {
	if len(levels) > 16 {
		return fmt.Errorf("parameter levels: %d names, want 1 to 16", len(levels))
	}
	for i, level := range levels {
		if err := params.CheckName(level); err != nil {
			return fmt.Errorf("parameter levels: the name %q: want %w", level, err)
		}
		if slices.Contains(levels[:i], level) {
			return fmt.Errorf("parameter levels: %q is given twice", level)
		}
	}
	return nil
}

// level is the index of the list that m belongs on.
func (q *priority) level(m queue.Message) int {
	name := m.Headers[Header]
	if q.byKey {
		name, _, _ = strings.Cut(m.Key, ":")
	}
	if i := slices.Index(q.levels, name); i >= 0 {
		return i
	}
	return len(q.levels) - 1
}

// leveled is an encoded message and its level.
type leveled struct {
	value *redisconn.Value
	level int
}

// Publisher implements queue.Queue.
func (q *priority) Publisher(ctx context.Context) (queue.Publisher, error) {
	encode := func(msgs []queue.Message) []leveled {
		all := make([]leveled, len(msgs))
		for i, v := range redisconn.Envelopes(msgs) {
			all[i] = leveled{v, q.level(msgs[i])}
		}
		return all
	}
	return redisconn.NewPublisher(ctx, q.Base, encode, func(l leveled) int { return redisconn.ValueSize(l.value) }, q.push)
}

// push is one LPUSH for each level, the most urgent first.
func (q *priority) push(ctx context.Context, c *redis.Client, values []leveled, results []redisconn.Sent) {
	args := make([][]any, len(q.levels))
	for _, v := range values {
		if args[v.level] == nil {
			args[v.level] = []any{"lpush", q.keys[v.level]}
		}
		args[v.level] = append(args[v.level], v.value)
	}
	var cmds []*redis.IntCmd
	at := make([]int, len(q.levels)) // of each level's command
	for level, a := range args {
		if a != nil {
			at[level] = len(cmds)
			cmds = append(cmds, redis.NewIntCmd(ctx, a...))
		}
	}
	sent := make([]redisconn.Sent, len(cmds))
	redisconn.Pipeline(ctx, c, cmds, sent)
	for i, v := range values {
		results[i] = sent[at[v.level]]
	}
}

// Consumer implements queue.Queue.
func (q *priority) Consumer(ctx context.Context) (queue.Consumer, error) {
	args := []any{"brpop"}
	for _, key := range q.keys {
		args = append(args, key)
	}
	args = append(args, int(redisconn.Block/time.Second))
	// One at a time: what is popped cannot be overtaken any more.
	return redisconn.NewPopper(ctx, q.Base, func(p *redisconn.Popper, _ int) ([]redisconn.Popped, error) {
		reply, err := p.Do(args...)
		if err != nil {
			return nil, err
		}
		return redisconn.PoppedBy(reply, false)
	})
}

// Backlog implements queue.Backlogger. A list knows nothing of deliveries.
func (q *priority) Backlog(ctx context.Context) (queue.Backlog, error) {
	return q.Lengths(ctx, q.keys...)
}

// Delete implements queue.Queue. Lists of levels that this URL does not name stay.
func (q *priority) Delete(ctx context.Context) error { return q.Unlink(ctx, q.keys...) }
