package redisconn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"queuelab/backends/internal/envelope"
	"queuelab/queue"
)

// Sent is what the server made of one message.
type Sent struct {
	Err       error // nil: accepted; otherwise Outcome tells
	Receivers int64 // Pub/Sub only
}

// Publisher is the publisher of every Redis queue; they differ in how messages
// become commands. It implements queue.Publisher.
type Publisher struct {
	pipe   *Pipe
	append func(dst []byte, m queue.Message) []byte
	calls  sync.Pool // of *call, that nobody else has any more
	once   sync.Once
	closed func()
}

// closePatience bounds how long a Close waits for publishes in flight.
const closePatience = 5 * time.Second

// NewPublisher opens a publisher on a connection of its own. A round trip holds
// at most limit messages. Messages are encoded by the caller's goroutine, so that
// what Publish was given is the caller's again when it returns, however it
// returns.
func NewPublisher(server Server, limit int, commands Commands, closed func()) *Publisher {
	return &Publisher{
		pipe: NewPipe(server, limit, commands), append: commands.Append, closed: closed,
		calls: sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }},
	}
}

// Publish implements queue.Publisher.
func (p *Publisher) Publish(ctx context.Context, msgs ...queue.Message) error {
	return p.publish(ctx, msgs, nil)
}

// Counted is Publish, with the receivers of each message. It is not called
// PublishCounted, or every Redis queue would claim to be a
// queue.ReceiverCounter, and say that nobody heard what it stores.
func (p *Publisher) Counted(ctx context.Context, msgs ...queue.Message) ([]int64, error) {
	receivers := make([]int64, len(msgs))
	return receivers, p.publish(ctx, msgs, receivers)
}

func (p *Publisher) publish(ctx context.Context, msgs []queue.Message, receivers []int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(msgs) == 0 {
		return nil
	}
	k := p.calls.Get().(*call)
	k.begin(len(msgs))
	for i := range msgs {
		if msgs[i].ID == "" {
			p.calls.Put(k)
			return queue.Reject(fmt.Errorf("publish: message %d of %d has no id", i+1, len(msgs)))
		}
		k.buf = p.append(k.buf, msgs[i])
		k.ends[i] = len(k.buf)
	}
	sent, err := p.pipe.Do(ctx, k)
	if errors.Is(err, queue.ErrClosed) {
		return err
	}
	if err != nil { // the context ended
		return outcomes(len(msgs), func(i int) error {
			if i < sent {
				return err
			}
			return queue.Reject(err)
		})
	}
	for i := range k.results {
		if receivers != nil {
			receivers[i] = k.results[i].Receivers
		}
		if err == nil && k.results[i].Err != nil {
			err = outcomes(len(msgs), func(i int) error { return k.results[i].Err })
		}
	}
	if cap(k.buf) <= wireKeep {
		p.calls.Put(k)
	}
	return err
}

// begin makes k a call of n messages.
func (k *call) begin(n int) {
	k.buf, k.sent, k.open = k.buf[:0], 0, n
	k.ends = slices.Grow(k.ends[:0], n)[:n]
	k.results = slices.Grow(k.results[:0], n)[:n]
}

// AppendEnvelope appends an argument that is a whole message.
func AppendEnvelope(dst []byte, m queue.Message) []byte {
	dst = appendLine(dst, '$', envelope.Size(m))
	return append(envelope.Append(dst, m), '\r', '\n')
}

func outcomes(n int, result func(i int) error) error {
	pe := &queue.PublishError{Outcomes: make([]queue.Outcome, n)}
	for i := range n {
		err := result(i)
		if errors.Is(err, queue.ErrRejected) {
			pe.Outcomes[i] = queue.Rejected
		} else {
			pe.Outcomes[i] = Outcome(err)
		}
		if pe.Err == nil && err != nil {
			pe.Err = fmt.Errorf("publish: %w", err)
		}
	}
	return pe
}

// Close implements queue.Publisher.
func (p *Publisher) Close() error {
	p.once.Do(func() {
		p.pipe.Close(closePatience)
		p.closed()
	})
	return nil
}
