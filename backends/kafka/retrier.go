package kafka

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"queuelab/queue"
)

// retrier is a publisher on a client library's own producer, as most programs have
// it: it tries again what failed, behind our back.
type retrier struct {
	q      *topicQueue
	own    producer
	ctx    context.Context // ends when Close has waited long enough
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup
	once   sync.Once
}

// producer is what differs between the libraries'.
type producer interface {
	// send is Publish of messages that have an id. It keeps nothing of them.
	send(ctx context.Context, msgs []queue.Message) error
	// close gives up on what is left. No send is under way.
	close()
}

func newRetrier(q *topicQueue) (_ queue.Publisher, err error) {
	r := &retrier{q: q}
	if !q.franz {
		r.own = newKafkaGoProducer(q)
	} else if r.own, err = newFranzProducer(q); err != nil {
		return nil, err
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r, nil
}

// Publish implements queue.Publisher. Whatever the library gave up on is unknown:
// it does not say whether an earlier try was stored.
func (r *retrier) Publish(ctx context.Context, msgs ...queue.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !r.begin() {
		return queue.ErrClosed
	}
	defer r.calls.Done()
	for i, m := range msgs {
		if m.ID == "" {
			return queue.Reject(fmt.Errorf("kafka: publish: message %d of %d has no id", i+1, len(msgs)))
		}
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	err := r.own.send(within, msgs)
	if ctx.Err() == nil && r.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		// But not before the messages were under way.
		return unknown(len(msgs), fmt.Errorf("kafka: publish: %w", queue.ErrClosed))
	}
	return err
}

func unknown(n int, err error) *queue.PublishError {
	return &queue.PublishError{Outcomes: slices.Repeat([]queue.Outcome{queue.Unknown}, n), Err: err}
}

func (r *retrier) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.calls.Add(1)
	}
	return !r.closed
}

// Close implements queue.Publisher. It waits for calls in flight as long as one
// request may take, then cuts them off. No producer is closed while a call is in
// it: with kafka-go's neither of the two might ever end.
func (r *retrier) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.once.Do(func() {
		late := time.AfterFunc(r.q.timeout, r.cancel)
		r.calls.Wait()
		late.Stop()
		r.cancel()
		r.own.close()
		r.q.forget(r)
	})
	return nil
}

// kafkaGoProducer is kafka-go's Writer. It has no means to see that an earlier try
// was stored, and so may store a message twice.
type kafkaGoProducer struct {
	writer *kafkago.Writer
	wires  *kafkago.Transport // its own, to be closed with it
}

func newKafkaGoProducer(q *topicQueue) kafkaGoProducer {
	wires := &kafkago.Transport{ClientID: clientID, DialTimeout: q.timeout, MetadataTTL: time.Second}
	return kafkaGoProducer{wires: wires, writer: &kafkago.Writer{
		Addr:            kafkago.TCP(q.hosts...),
		Topic:           q.topic,
		Balancer:        new(byKey),
		MaxAttempts:     1 + q.retries,
		WriteBackoffMin: retryFirst,
		WriteBackoffMax: retryMost,
		BatchSize:       q.batch,
		BatchBytes:      int64(q.maxBytes()),
		BatchTimeout:    cmp.Or(q.linger, time.Millisecond), // 0 is its default, a second
		ReadTimeout:     q.timeout,
		WriteTimeout:    q.timeout,
		RequiredAcks:    kafkago.RequiredAcks(q.acks),
		Transport:       wires,
	}}
}

func (p kafkaGoProducer) send(ctx context.Context, msgs []queue.Message) error {
	records := make([]kafkago.Message, len(msgs))
	for i, m := range msgs {
		// Copied: a call that gives up leaves its messages with the producer.
		records[i] = kafkago.Message{
			Value: bytes.Clone(m.Body), Headers: []kafkago.Header{{Key: idHeader, Value: []byte(m.ID)}},
		}
		if m.Key != "" {
			records[i].Key = []byte(m.Key)
		}
		for name, value := range m.Headers {
			records[i].Headers = append(records[i].Headers, kafkago.Header{Key: name, Value: []byte(value)})
		}
	}
	err := p.writer.WriteMessages(ctx, records...)
	var each kafkago.WriteErrors
	var large kafkago.MessageTooLargeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &large): // it looks at all of them before it sends the first
		return queue.Reject(fmt.Errorf("kafka: publish: %w", err))
	case !errors.As(err, &each):
		return fmt.Errorf("kafka: publish: %w", err)
	}
	failed := unknown(len(msgs), nil)
	for i, err := range each {
		if err == nil {
			failed.Outcomes[i] = queue.Accepted
		} else if failed.Err == nil {
			failed.Err = fmt.Errorf("kafka: publish: %w", err)
		}
	}
	return failed
}

// close waits for what the writer has begun, with all its retries.
func (p kafkaGoProducer) close() {
	_ = p.writer.Close() // it is closed whatever this says
	p.wires.CloseIdleConnections()
}

// byKey puts a key where the other publisher puts it.
type byKey struct{ turns kafkago.RoundRobin }

// Balance implements kafkago.Balancer.
func (b *byKey) Balance(m kafkago.Message, partitions ...int) int {
	if m.Key == nil {
		return b.turns.Balance(m, partitions...)
	}
	return partitions[keyPartition(string(m.Key), len(partitions))]
}
