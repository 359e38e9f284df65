package broker

import (
	"context"
	"errors"
	"fmt"
)

// ErrNoMemoryLimit means that the memory of this broker cannot be limited from
// here: it is somebody else's, in a container, a cluster, or of a kind that has no
// such limit. It comes wrapped, with what is missing.
var ErrNoMemoryLimit = errors.New("the memory of this broker cannot be limited from here")

// memory is a host whose broker's memory can be limited.
type memory interface {
	limitMemory(ctx context.Context, more int64) error
	watermark(ctx context.Context, to string) (was string, err error)
}

// LimitMemory lets the broker's process take so many bytes of address space more
// than it has now, and no more: whatever it wants to allocate beyond that fails,
// and most brokers die of it. The limit ends with the process, so that Restart
// starts one without. ErrNoMemoryLimit where there is none to be had.
func (b *Broker) LimitMemory(ctx context.Context, more int64) error {
	return b.onMemory(ctx, "limit the memory of", func(m memory, ctx context.Context) error { return m.limitMemory(ctx, more) })
}

// SetMemoryWatermark sets how much memory RabbitMQ may use before it blocks its
// publishers, as Erlang writes it: 0.4 of the machine's, or {absolute,1048576}
// bytes. It returns what was set before, to be put back. ErrNoMemoryLimit where
// the broker has none.
func (b *Broker) SetMemoryWatermark(ctx context.Context, to string) (was string, err error) {
	err = b.onMemory(ctx, "set the memory watermark of", func(m memory, ctx context.Context) (err error) {
		was, err = m.watermark(ctx, to)
		return err
	})
	return was, err
}

func (b *Broker) onMemory(ctx context.Context, what string, f func(memory, context.Context) error) error {
	if b.host == nil {
		return fmt.Errorf("%s %s: %w: %w", what, b.kind.name, ErrNoMemoryLimit, ErrExternal)
	}
	return b.do(ctx, what, func(h host, ctx context.Context) error {
		if m, ok := h.(memory); ok {
			return f(m, ctx)
		}
		return fmt.Errorf("%w: it is no single broker that runs natively", ErrNoMemoryLimit)
	})
}

// AwaitEnd waits until the broker's process ends though nobody here had it ended,
// and says how it did; or until ctx ends. Restart starts it again. ErrExternal for
// one that belongs to somebody else.
func (b *Broker) AwaitEnd(ctx context.Context) (how string, err error) {
	if b.host == nil {
		return "", fmt.Errorf("wait for the end of %s: %w", b.kind.name, ErrExternal)
	}
	select {
	case how := <-b.host.died():
		return how, nil
	case <-ctx.Done():
		return "", fmt.Errorf("wait for the end of %s: %w", b.kind.name, ctx.Err())
	}
}
