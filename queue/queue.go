// Package queue is the contract that every backend implements: messages,
// publishers, consumers, and the data that says what each of them promises.
//
// Nothing in this package talks to a broker. An implementation is a package
// under backends, and it is done when queue/queuetest passes on it.
package queue

import (
	"context"
	"time"
)

// Message is what a publisher hands over and a consumer gets back, unchanged.
type Message struct {
	// ID identifies the message for its whole life. The publisher sets it, a
	// retry keeps it, and effects are made unique by it. It must not be empty.
	ID string
	// Key groups messages whose order matters. Where Capabilities.OrderedPerKey
	// holds, one consumer sees the messages of one key in publish order.
	Key string
	// Body is opaque. Neither side may change it after handing it over.
	Body []byte
	// Headers are optional; nil costs nothing.
	Headers map[string]string
}

// Queue is one named queue on one broker (or in this process), opened with
// settings that do not change while it is open.
//
// All methods are safe for concurrent use.
type Queue interface {
	// Publisher opens a publisher. Publishers and consumers of one Queue never
	// share a connection, so that back-pressure on one cannot stall the other.
	Publisher(ctx context.Context) (Publisher, error)

	// Consumer opens a consumer and returns once it will see new messages: a
	// message published after Consumer returned is not missed by it.
	Consumer(ctx context.Context) (Consumer, error)

	// Capabilities says what this queue promises with the settings that it was
	// opened with. It is constant and costs nothing to call.
	Capabilities() Capabilities

	// Delete removes the queue and all that is in it from the broker. Deleting
	// what does not exist is not an error. Open publishers and consumers of a
	// deleted queue may fail until it is opened again.
	Delete(ctx context.Context) error

	// Close closes every publisher and consumer that this Queue opened, and
	// frees what it holds. The messages stay. A second Close is a no-op.
	Close() error
}

// Publisher hands messages to the queue. It is safe for concurrent use, and
// concurrent calls share round trips where the backend can do that.
type Publisher interface {
	// Publish hands over the messages, in order, and waits for the answer that
	// Capabilities.Confirm names.
	//
	// nil: every message was accepted, as this setting defines it.
	// Otherwise the outcomes differ per message; OutcomeOf tells them apart.
	// What is not certainly rejected is unknown: after a time-out, a reset, a
	// cancelled context or ErrClosed midway a message may or may not be in the
	// queue. Publish never retries: a retry is the caller's, with the same ID,
	// so that a second copy is never a secret.
	//
	// If ctx has ended before the call, Publish returns ctx.Err() and certainly
	// hands over nothing. After Close it returns ErrClosed, likewise.
	Publish(ctx context.Context, msgs ...Message) error

	// Close waits for calls in flight, within a bound, and closes the
	// connection. A second Close is a no-op.
	Close() error
}

// Consumer takes messages from the queue. One goroutine may be in Receive at
// a time; Ack, Nack and Close may be called at any time from any goroutine.
type Consumer interface {
	// Receive blocks until there is at least one message, then returns those
	// that are there, at most max, in order. It never returns none without an
	// error. A max below 1 is an error at once.
	//
	// When ctx ends while Receive blocks it returns promptly with ctx.Err(), as
	// it is, and swallows no message: what the broker had already handed over
	// is returned by the next Receive, or given back by Close.
	// After Close it returns ErrClosed, also when it was blocked.
	// Any other error means that this call failed, for example because the
	// broker is down. The consumer stays usable: the next Receive reconnects,
	// and waits as long as back-off asks, so that a loop over Receive is never
	// a busy loop.
	Receive(ctx context.Context, max int) ([]*Delivery, error)

	// Ack settles deliveries as done: the queue may forget them. Deliveries may
	// be acked in any order; acking a later one does not settle an earlier one.
	// Many in one call cost one round trip where the queue can.
	//
	// What nil means is Capabilities.AckConfirmed. Settling again is
	// ErrSettled. Where the queue can tell that a delivery now belongs to
	// another consumer the error is ErrLeaseLost. When several deliveries
	// differ in their outcome the error is a *SettleError. After any error
	// other than these the delivery stays unsettled, and Ack may be tried again.
	Ack(ctx context.Context, ds ...*Delivery) error

	// Nack gives deliveries back, to be delivered again as soon as may be, to
	// any consumer. It is ErrUnsupported where Capabilities.Nack is false, also
	// without deliveries, so that a caller can ask; the deliveries then stay
	// unsettled. Otherwise errors are those of Ack.
	Nack(ctx context.Context, ds ...*Delivery) error

	// Close gives unsettled deliveries back where the queue can, unblocks
	// Receive and closes the connection. A second Close is a no-op.
	Close() error
}

// Backlog counts what is in a queue. A number that the broker does not tell
// is -1.
type Backlog struct {
	Ready    int64 // waiting to be delivered
	InFlight int64 // delivered, not settled
	Dead     int64 // in the broker's own dead-letter destination
}

// Backlogger is implemented by a Queue that can look into itself, for drains,
// metrics and admission limits. The counts are a snapshot and may lag behind.
type Backlogger interface {
	Backlog(ctx context.Context) (Backlog, error)
}

// From says where a replay begins. The zero value is the oldest message that the
// queue still has.
type From struct {
	// Time: at the first message that was accepted at or after it, by the broker's
	// clock, which counts in milliseconds.
	Time time.Time
	// Offset: at this message, as the broker numbers them; the backend's package
	// doc says how that is written. It must not be given together with Time.
	Offset string
}

// Replayer is implemented by a Queue that keeps messages which were acked, and
// can deliver them again. Capabilities.Replay says so.
type Replayer interface {
	// Replay opens a consumer outside of every group, which gets each message
	// from the given place on, and goes on with what is published later. Groups do
	// not notice it, and none of its deliveries is leased: Ack settles in this
	// process and does not fail, Nack is ErrUnsupported, and what it leaves
	// unsettled does not come again. How long a message can be replayed is the
	// queue's own setting; one that is gone is passed over.
	Replay(ctx context.Context, from From) (Consumer, error)
}

// ReceiverCounter is implemented by a Publisher whose broker tells how many
// consumers a message was handed to, and keeps nothing for the others.
type ReceiverCounter interface {
	// PublishCounted is Publish, and also returns the receivers of each message.
	// Zero with a nil error means that the message is gone: nobody heard it.
	PublishCounted(ctx context.Context, msgs ...Message) ([]int64, error)
}
