package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/driver"
	"queuelab/backends/internal/params"
	"queuelab/queue"
)

// Base is what every Redis queue has.
type Base struct {
	Server
	Control  *redis.Client // for what is done now and then
	Facts    Facts
	Name     string             // the parameter queue
	Caps     queue.Capabilities // the queue's Open sets them
	Children driver.Children

	kind     string
	pipeline int
}

// Open parses what the URLs of all Redis queues have in common, verifies that
// the server answers, and reads how it keeps its data. kind names the queue in
// errors; p has been asked for all that is the queue's own.
func Open(ctx context.Context, kind string, u *url.URL, p *params.Params) (*Base, error) {
	server, err := Parse(u, p)
	b := &Base{Server: server, kind: kind, Name: p.Name("queue", ""), pipeline: p.Int("pipeline", 512, 1, 10000)}
	if b.Name == "" {
		err = errors.Join(err, errors.New("the parameter queue=NAME is missing"))
	}
	if err := errors.Join(err, p.Err()); err != nil {
		return nil, err
	}
	b.Control = server.Client(2)
	if b.Facts, err = server.Inspect(ctx, b.Control); err != nil {
		return nil, errors.Join(err, b.Control.Close())
	}
	return b, nil
}

// NewPublisher opens a publisher of the queue, of messages encoded so.
func NewPublisher[T any](ctx context.Context, b *Base, encode func([]queue.Message) []T, size func(T) int,
	send func(ctx context.Context, c *redis.Client, items []T, results []Sent)) (queue.Publisher, error) {
	p, err := open(ctx, b, encode, size, send)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func open[T any](ctx context.Context, b *Base, encode func([]queue.Message) []T, size func(T) int,
	send func(ctx context.Context, c *redis.Client, items []T, results []Sent)) (*publisher[T], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := &publisher[T]{encode: encode, client: b.Client(2), children: &b.Children}
	// No caller's context: the round trip is everybody's. The client's timeouts
	// bound it.
	ctx = context.Background()
	if b.Wait > 0 {
		p.client.AddHook(replicated{p.client, b.Wait, b.Timeout / 3})
		ctx = context.WithValue(ctx, waits{}, true)
	}
	p.shared = driver.NewCoalescer(b.pipeline, size, func(items []T, results []Sent) {
		send(ctx, p.client, items, results)
	})
	if err := b.Children.Keep(p); err != nil {
		return nil, err
	}
	return p, nil
}

// Capabilities implements queue.Queue.
func (b *Base) Capabilities() queue.Capabilities { return b.Caps }

// Settings implements queue.Inspector: maxmemory-policy and, where the data are
// on this server alone, appendonly.
func (b *Base) Settings() map[string]string {
	set := map[string]string{}
	if b.Facts.Policy != "" {
		set["maxmemory-policy"] = b.Facts.Policy
	}
	if b.Facts.Version != "" && !(b.Facts.Failover && b.Facts.Replicas > 0) {
		set["appendonly"] = "no"
		if b.Facts.AOF {
			set["appendonly"] = "yes"
			if b.Facts.Fsync != "" {
				set["appendfsync"] = b.Facts.Fsync
			}
		}
	}
	return set
}

// Needs is an error where the server is older than major, and none where it does
// not tell its version.
func (b *Base) Needs(major int, what string) error {
	if b.Facts.Version == "" || b.Facts.major() >= major {
		return nil
	}
	return fmt.Errorf("%s needs Redis %d or later, the server is %s", what, major, b.Facts.Version)
}

// Wrap is the error of an operation of the queue; nil for nil.
func (b *Base) Wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, redis.ErrClosed) {
		return queue.ErrClosed
	}
	return fmt.Errorf("%s %s: %w", b.kind, op, err)
}

// Close implements queue.Queue.
func (b *Base) Close() error {
	first, err := b.Children.CloseAll()
	if !first {
		return nil
	}
	return errors.Join(err, b.Control.Close())
}
