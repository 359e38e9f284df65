package ledger

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"queuelab/queue"
)

// RecordCost measures what all five records of one message cost here: intent,
// accepted, delivered, effect and acked, through RecordPublisher and
// RecordConsumer, into a ledger in dir; "" is the default directory for temporary
// files. It is the time that they add on the way of the message, in nanoseconds:
// the median of many short rounds, so that other processes that get the core now
// and then are not in it. It takes a tenth of a second, and leaves nothing in dir.
func RecordCost(ctx context.Context, dir string) (nsPerMessage float64, err error) {
	dir, err = os.MkdirTemp(dir, "record-cost-")
	if err != nil {
		return 0, fmt.Errorf("record cost: %w", err)
	}
	defer os.RemoveAll(dir)
	w, err := Create(filepath.Join(dir, "ledger"), 0)
	if err != nil {
		return 0, fmt.Errorf("record cost: %w", err)
	}
	const atMost, perRound, leastRounds, mostRounds = 100 * time.Millisecond, 50, 10, 2000
	m := newNullMessage(w)
	var rounds []float64
	for began := time.Now(); len(rounds) < mostRounds && (len(rounds) < leastRounds || time.Since(began) < atMost); {
		round := time.Now()
		for range perRound {
			if err = m.pass(ctx); err != nil {
				break
			}
		}
		rounds = append(rounds, float64(time.Since(round).Nanoseconds())/perRound)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			w.Close()
			return 0, fmt.Errorf("record cost: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return 0, fmt.Errorf("record cost: %w", err)
	}
	slices.Sort(rounds)
	return rounds[len(rounds)/2], nil
}

// nullMessage is a message that goes through the recorders and no queue.
type nullMessage struct {
	msgs      []queue.Message
	w         *Writer
	publisher queue.Publisher
	consumer  queue.Consumer
}

func newNullMessage(w *Writer) *nullMessage {
	m := &nullMessage{msgs: []queue.Message{{ID: FormatID(ID{Trial: 1, Producer: 1, Seq: 1_234_567})}}, w: w}
	m.publisher = RecordPublisher(nullQueue{}, w)
	m.consumer = RecordConsumer(nullQueue{[]*queue.Delivery{queue.NewDelivery(m.msgs[0], 1, nil)}}, w)
	return m
}

func (m *nullMessage) pass(ctx context.Context) error {
	if err := m.publisher.Publish(ctx, m.msgs...); err != nil {
		return err
	}
	ds, err := m.consumer.Receive(ctx, 1)
	if err != nil {
		return err
	}
	RecordEffect(m.w, ds[0])
	return m.consumer.Ack(ctx, ds...)
}

// nullQueue takes everything and delivers the same again and again.
type nullQueue struct{ deliveries []*queue.Delivery }

// Publish implements queue.Publisher.
func (nullQueue) Publish(context.Context, ...queue.Message) error { return nil }

// Receive implements queue.Consumer.
func (q nullQueue) Receive(context.Context, int) ([]*queue.Delivery, error) { return q.deliveries, nil }

// Ack implements queue.Consumer.
func (nullQueue) Ack(context.Context, ...*queue.Delivery) error { return nil }

// Nack implements queue.Consumer.
func (nullQueue) Nack(context.Context, ...*queue.Delivery) error { return nil }

// Close implements queue.Publisher and queue.Consumer.
func (nullQueue) Close() error { return nil }
