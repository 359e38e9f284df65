package redisconn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/driver"
	"queuelab/backends/internal/envelope"
	"queuelab/queue"
)

// Sent is what the server made of one message.
type Sent struct {
	Err       error // nil: accepted; otherwise Outcome tells
	Receivers int64 // Pub/Sub only
}

// publisher is the publisher of every Redis queue; they differ in how a message
// is put into a command and how commands are sent. It implements
// queue.Publisher.
type publisher[T any] struct {
	encode   func([]queue.Message) []T
	client   *redis.Client // its own, which Close closes
	shared   *driver.Coalescer[T, Sent]
	children *driver.Children
	once     sync.Once
	err      error
}

// closePatience bounds how long a Close waits for publishes in flight.
const closePatience = 5 * time.Second

// Publish implements queue.Publisher.
func (p *publisher[T]) Publish(ctx context.Context, msgs ...queue.Message) error {
	_, err := p.publish(ctx, msgs)
	return err
}

// NewCounted is NewPublisher, of a queue.ReceiverCounter. Not every Redis queue may
// claim to be one: it would say that nobody heard what is stored.
func NewCounted[T any](ctx context.Context, b *Base, encode func([]queue.Message) []T, size func(T) int,
	send func(ctx context.Context, c *redis.Client, items []T, results []Sent)) (queue.Publisher, error) {
	p, err := open(ctx, b, encode, size, send)
	if err != nil {
		return nil, err
	}
	return counted[T]{p}, nil
}

type counted[T any] struct{ *publisher[T] }

var _ queue.ReceiverCounter = counted[int]{}

// PublishCounted implements queue.ReceiverCounter.
func (c counted[T]) PublishCounted(ctx context.Context, msgs ...queue.Message) ([]int64, error) {
	sent, err := c.publish(ctx, msgs)
	receivers := make([]int64, len(msgs))
	for i := range sent {
		receivers[i] = sent[i].Receivers
	}
	return receivers, err
}

func (p *publisher[T]) publish(ctx context.Context, msgs []queue.Message) ([]Sent, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i := range msgs {
		if msgs[i].ID == "" {
			return nil, queue.Reject(fmt.Errorf("publish: message %d of %d has no id", i+1, len(msgs)))
		}
	}
	if len(msgs) == 0 {
		return nil, nil
	}
	// Encoded by the caller's goroutine, so that what Publish was given is the
	// caller's again when it returns, however it returns.
	return driver.Publish(ctx, "publish", p.shared, p.encode(msgs), outcomeOf)
}

func outcomeOf(s Sent) (queue.Outcome, error) {
	if errors.Is(s.Err, queue.ErrRejected) {
		return queue.Rejected, s.Err
	}
	return Outcome(s.Err), s.Err
}

// Close implements queue.Publisher.
func (p *publisher[T]) Close() error {
	p.once.Do(func() {
		p.shared.Close(closePatience)
		if err := p.client.Close(); err != nil {
			p.err = fmt.Errorf("close the publisher's connections: %w", err)
		}
		p.children.Remove(p)
	})
	return p.err
}

// Value is an argument of a command. A pointer to it fits into an interface
// without an allocation, as a pointer to a string does.
type Value []byte

// MarshalBinary implements encoding.BinaryMarshaler.
func (v *Value) MarshalBinary() ([]byte, error) { return *v, nil }

// Envelopes encodes messages as whole values, in a few allocations for all.
func Envelopes(msgs []queue.Message) []*Value {
	size := 0
	for i := range msgs {
		size += envelope.Size(msgs[i])
	}
	buf, all, values := make([]byte, 0, size), make([]Value, len(msgs)), make([]*Value, len(msgs))
	for i := range msgs {
		from := len(buf)
		buf = envelope.Append(buf, msgs[i])
		all[i] = buf[from:]
		values[i] = &all[i]
	}
	return values
}

// ValueSize is how many bytes a value takes.
func ValueSize(v *Value) int { return len(*v) }

// Pipeline sends one command per message, and fills in each one's error.
func Pipeline[C redis.Cmder](ctx context.Context, c *redis.Client, cmds []C, results []Sent) {
	if len(cmds) == 1 {
		results[0].Err = c.Process(ctx, cmds[0])
		return
	}
	pipe := c.Pipeline()
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd) // only queues it
	}
	_, _ = pipe.Exec(ctx) // the first error of those that each command has
	for i, cmd := range cmds {
		results[i].Err = cmd.Err()
	}
}

// CommandSize is about how many bytes a command takes.
func CommandSize[C redis.Cmder](cmd C) int {
	n := 0
	for _, arg := range cmd.Args() {
		switch a := arg.(type) {
		case string:
			n += len(a)
		case *string:
			n += len(*a)
		case *Value:
			n += len(*a)
		}
	}
	return n
}
