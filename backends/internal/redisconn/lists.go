package redisconn

import (
	"context"
	"net/url"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/params"
	"queuelab/queue"
)

// List is a queue on one list, whose pop removes what it delivers.
type List struct {
	*Base
	Key string
	Pop func(p *Popper, most int) ([]Popped, error) // as NewPopper wants it
}

// OpenList is Open for such a list, whose key begins with prefix, and sets what it
// is capable of.
func OpenList(ctx context.Context, kind, prefix string, u *url.URL, p *params.Params) (List, error) {
	b, err := Open(ctx, kind, u, p)
	if err != nil {
		return List{}, err
	}
	b.Caps = b.PoppedLists()
	return List{Base: b, Key: prefix + ":{" + b.Name + "}"}, nil
}

// PoppedLists is what a queue is capable of whose pop removes what it delivers.
func (b *Base) PoppedLists() queue.Capabilities {
	return queue.Capabilities{
		Guarantee:     queue.AtMostOnce,
		Confirm:       b.Facts.Confirm(),
		Attempts:      queue.NotCounted,
		OrderedPerKey: true,
		Stored:        true,
		Durable:       b.Facts.Durable(),
		Shared:        true,
	}
}

// Publisher implements queue.Queue.
func (l List) Publisher(ctx context.Context) (queue.Publisher, error) {
	return NewPublisher(ctx, l.Base, Envelopes, ValueSize, Push(l.Key))
}

// Consumer implements queue.Queue.
func (l List) Consumer(ctx context.Context) (queue.Consumer, error) {
	return NewPopper(ctx, l.Base, l.Pop)
}

// Backlog implements queue.Backlogger. A list knows nothing of deliveries.
func (l List) Backlog(ctx context.Context) (queue.Backlog, error) { return l.Lengths(ctx, l.Key) }

// Delete implements queue.Queue.
func (l List) Delete(ctx context.Context) error { return l.Unlink(ctx, l.Key) }

// Push sends values to the head of a list. It is one command for all: the server
// takes all of them or none.
func Push(key string) func(ctx context.Context, c *redis.Client, values []*Value, results []Sent) {
	return func(ctx context.Context, c *redis.Client, values []*Value, results []Sent) {
		args := make([]any, 0, len(values)+2)
		args = append(args, "lpush", key)
		for _, v := range values {
			args = append(args, v)
		}
		err := c.Process(ctx, redis.NewIntCmd(ctx, args...))
		for i := range results {
			results[i].Err = err
		}
	}
}

// Lengths counts what waits on lists, which know nothing of deliveries.
func (b *Base) Lengths(ctx context.Context, keys ...string) (queue.Backlog, error) {
	pipe := b.Control.Pipeline()
	lengths := make([]*redis.IntCmd, len(keys))
	for i, key := range keys {
		lengths[i] = pipe.LLen(ctx, key)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return queue.Backlog{}, b.Wrap("count the backlog", err)
	}
	backlog := queue.Backlog{InFlight: -1, Dead: -1}
	for _, n := range lengths {
		backlog.Ready += n.Val()
	}
	return backlog, nil
}

// Unlink removes keys. Those that are not there are no error.
func (b *Base) Unlink(ctx context.Context, keys ...string) error {
	if err := b.Control.Unlink(ctx, keys...).Err(); err != nil {
		return b.Wrap("delete", err)
	}
	return nil
}
