package broker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNoAckTimeout means that this broker's patience with its consumers cannot be
// set from here. It comes wrapped, with the reason.
var ErrNoAckTimeout = errors.New("how long this broker waits for an ack cannot be set from here")

// SetAckTimeout sets how long RabbitMQ waits for the ack of a delivery before it
// closes the consumer's channel (its consumer_timeout, 30 minutes as it comes), for
// channels that are opened from now on. within is at least 10 ms. It lasts until the
// broker ends. ErrNoAckTimeout where there is no such thing, or it is not ours.
func (b *Broker) SetAckTimeout(ctx context.Context, within time.Duration) error {
	if within < 10*time.Millisecond {
		return fmt.Errorf("set the ack time-out of %s to %v: it is at least 10ms", b.kind.name, within)
	}
	if b.host == nil {
		return fmt.Errorf("set the ack time-out of %s: %w: %w", b.kind.name, ErrNoAckTimeout, ErrExternal)
	}
	return b.do(ctx, "set the ack time-out of", func(h host, ctx context.Context) error {
		n, ok := h.(interface {
			ackTimeout(ctx context.Context, within time.Duration) error
		})
		if !ok {
			return fmt.Errorf("%w: it is no single broker that runs natively", ErrNoAckTimeout)
		}
		return n.ackTimeout(ctx, within)
	})
}
