package node

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"queuelab/bench/ledger"
	"queuelab/queue"
)

// Fake is a queue in the node's memory with known faults, to calibrate the
// harness against. Those that strike every so many messages count them by their
// sequence number, so that what was injected is known without asking it.
type Fake struct {
	Service   time.Duration // of one Publish, one after another; 0: at once
	Rate      float64       // with Service: message n comes when it is due at this rate, also where its producer was woken late
	FreezeAt  time.Duration // after the first Publish
	FreezeFor time.Duration

	DropEvery           uint64 // accepted, never delivered
	DuplicateEvery      uint64 // delivered twice
	ReorderEvery        uint64 // delivered after the next message
	RejectEvery         uint64 // rejected
	RejectDeliverEvery  uint64 // rejected, and delivered all the same
	UnknownEvery        uint64 // no answer, not delivered
	UnknownDeliverEvery uint64 // no answer, and delivered
	PhantomEvery        uint64 // a message that nobody sent is delivered beside it
	RetryEvery          uint64 // no answer, delivered, and published again by the producer

	HandleFor time.Duration // the consumer takes so long for each message
	Skew      time.Duration // of the consumer's clock
}

var errNoAnswer = errors.New("fake: no answer")

// fakeRoom is more than any calibration sends.
const fakeRoom = 1 << 20

func openFake(f Fake) queue.Queue {
	return &fakeQueue{fake: f, messages: make(chan arrived, fakeRoom), closed: make(chan struct{})}
}

// arrived is a message and since when it waits.
type arrived struct {
	queue.Message
	at int64
}

type fakeQueue struct {
	fake     Fake
	messages chan arrived
	closed   chan struct{}
	once     sync.Once

	publishing, handling server

	mu    sync.Mutex
	began int64 // the first Publish, as of ledger.Now
	held  []queue.Message
}

// Capabilities implements queue.Queue.
func (q *fakeQueue) Capabilities() queue.Capabilities {
	return queue.Capabilities{Guarantee: queue.AtLeastOnce, Confirm: queue.ConfirmMemory, AckConfirmed: true, OrderedPerKey: true}
}

// Publisher implements queue.Queue.
func (q *fakeQueue) Publisher(context.Context) (queue.Publisher, error) { return fakePublisher{q}, nil }

// Consumer implements queue.Queue.
func (q *fakeQueue) Consumer(context.Context) (queue.Consumer, error) { return fakeConsumer{q}, nil }

// Delete implements queue.Queue.
func (q *fakeQueue) Delete(context.Context) error { return nil }

// Close implements queue.Queue.
func (q *fakeQueue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

// server serves one message after another.
type server struct {
	mu   sync.Mutex
	free int64 // when it has served what it has, as of ledger.Now
}

// serve takes the time that a message takes which came at that time, and stands
// still between from and until. A server that has work goes on where it stopped,
// so that a late wake-up does not make it slower.
func (s *server) serve(came int64, each time.Duration, from, until int64) {
	if each == 0 {
		return
	}
	s.mu.Lock()
	start := max(came, s.free)
	if start >= from && start < until {
		start = until
	}
	s.free = start + int64(each)
	done := s.free
	s.mu.Unlock()
	if wait := time.Duration(done - ledger.Now()); wait > 2*time.Millisecond {
		time.Sleep(wait - time.Millisecond)
	}
	for ledger.Now() < done {
		runtime.Gosched()
	}
}

func (q *fakeQueue) serve(m queue.Message) {
	if q.fake.Service == 0 {
		return
	}
	id, err := ledger.ParseID(m.ID)
	if err != nil {
		return // accept says so
	}
	q.mu.Lock()
	if q.began == 0 {
		q.began = ledger.Now()
	}
	came := q.began + int64(float64(id.Seq)/q.fake.Rate*1e9)
	freeze := q.began + int64(q.fake.FreezeAt)
	q.mu.Unlock()
	q.publishing.serve(came, q.fake.Service, freeze, freeze+int64(q.fake.FreezeFor))
}

type fakePublisher struct{ q *fakeQueue }

// Publish implements queue.Publisher.
func (p fakePublisher) Publish(_ context.Context, msgs ...queue.Message) error {
	outcomes := make([]queue.Outcome, len(msgs))
	var failed error
	for i, m := range msgs {
		p.q.serve(m)
		var err error
		if outcomes[i], err = p.q.accept(m); err != nil {
			failed = err
		}
	}
	if failed == nil {
		return nil
	}
	return &queue.PublishError{Outcomes: outcomes, Err: failed}
}

// accept decides what becomes of a message.
func (q *fakeQueue) accept(m queue.Message) (queue.Outcome, error) {
	id, err := ledger.ParseID(m.ID)
	if err != nil {
		return queue.Rejected, err
	}
	f := q.fake
	hit := func(every uint64) bool { return every > 0 && (id.Seq+1)%every == 0 }
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case hit(f.DropEvery):
		return queue.Accepted, nil
	case hit(f.ReorderEvery):
		q.held = append(q.held, m)
		return queue.Accepted, nil
	case hit(f.RejectEvery):
		return queue.Rejected, queue.ErrRejected
	case hit(f.UnknownEvery):
		return queue.Unknown, errNoAnswer
	}
	push := func(m queue.Message) { q.messages <- arrived{m, ledger.Now()} }
	push(m)
	for _, late := range q.held {
		push(late)
	}
	q.held = nil
	switch {
	case hit(f.DuplicateEvery):
		push(m)
	case hit(f.PhantomEvery):
		id.Seq += fakeRoom
		push(queue.Message{ID: ledger.FormatID(id), Body: m.Body})
	case hit(f.RejectDeliverEvery):
		return queue.Rejected, queue.ErrRejected
	case hit(f.UnknownDeliverEvery):
		return queue.Unknown, errNoAnswer
	}
	return queue.Accepted, nil
}

// Close implements queue.Publisher.
func (fakePublisher) Close() error { return nil }

type fakeConsumer struct{ q *fakeQueue }

// Receive implements queue.Consumer.
func (c fakeConsumer) Receive(ctx context.Context, n int) ([]*queue.Delivery, error) {
	select {
	case m := <-c.q.messages:
		ds := []*queue.Delivery{queue.NewDelivery(m.Message, 0, nil)}
		for c.q.fake.HandleFor == 0 && len(ds) < n {
			select {
			case m := <-c.q.messages:
				ds = append(ds, queue.NewDelivery(m.Message, 0, nil))
			default:
				return ds, nil
			}
		}
		c.q.handling.serve(m.at, c.q.fake.HandleFor, 0, 0)
		return ds, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.q.closed:
		return nil, queue.ErrClosed
	}
}

// Ack implements queue.Consumer.
func (fakeConsumer) Ack(context.Context, ...*queue.Delivery) error { return nil }

// Nack implements queue.Consumer.
func (fakeConsumer) Nack(context.Context, ...*queue.Delivery) error { return queue.ErrUnsupported }

// Close implements queue.Consumer.
func (fakeConsumer) Close() error { return nil }

// retrying publishes some messages a second time with the same id, as a
// producer does that got no answer. It stands above the ledger, which so sees
// both attempts.
type retrying struct {
	queue.Publisher
	every uint64
}

// Publish implements queue.Publisher.
func (p retrying) Publish(ctx context.Context, msgs ...queue.Message) error {
	err := p.Publisher.Publish(ctx, msgs...)
	for _, m := range msgs {
		if id, perr := ledger.ParseID(m.ID); perr == nil && (id.Seq+1)%p.every == 0 {
			err = p.Publisher.Publish(ctx, m)
		}
	}
	return err
}
