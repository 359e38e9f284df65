package ledger

import (
	"context"

	"queuelab/queue"
)

type dueKey struct{}

// WithDue tells RecordPublisher when message i of the Publish call that gets
// this context was due, as of Now.
func WithDue(ctx context.Context, due func(i int) int64) context.Context {
	return context.WithValue(ctx, dueKey{}, due)
}

// RecordPublisher returns p with every message recorded in w: an intent before
// the call, an outcome after it. It is a queue.ReceiverCounter if p is one, and
// then records the receivers also for Publish.
func RecordPublisher(p queue.Publisher, w *Writer) queue.Publisher {
	r := recordingPublisher{p, w}
	if c, ok := p.(queue.ReceiverCounter); ok {
		return countingPublisher{r, c}
	}
	return r
}

type recordingPublisher struct {
	queue.Publisher
	w *Writer
}

// Publish implements queue.Publisher.
func (p recordingPublisher) Publish(ctx context.Context, msgs ...queue.Message) error {
	p.intend(ctx, msgs)
	err := p.Publisher.Publish(ctx, msgs...)
	p.conclude(msgs, nil, err)
	return err
}

func (p recordingPublisher) intend(ctx context.Context, msgs []queue.Message) {
	var call uint32
	if len(msgs) > 1 {
		call = p.w.calls.Add(1)
	}
	due, _ := ctx.Value(dueKey{}).(func(int) int64)
	now := Now()
	for i := range msgs {
		r := recordOf(Intent, msgs[i].ID, now)
		r.Arg, r.Due = call, now
		if due != nil {
			r.Due = due(i)
		}
		p.w.Append(r)
	}
}

func (p recordingPublisher) conclude(msgs []queue.Message, receivers []int64, err error) {
	now := Now()
	for i := range msgs {
		r := recordOf(Unknown, msgs[i].ID, now)
		switch queue.OutcomeOf(err, i) {
		case queue.Accepted:
			r.Event = Accepted
			if i < len(receivers) {
				r.Arg = uint32(receivers[i] + 1)
			}
		case queue.Rejected:
			r.Event = Rejected
		}
		p.w.Append(r)
	}
}

type countingPublisher struct {
	recordingPublisher
	counter queue.ReceiverCounter
}

// Publish implements queue.Publisher.
func (p countingPublisher) Publish(ctx context.Context, msgs ...queue.Message) error {
	_, err := p.PublishCounted(ctx, msgs...)
	return err
}

// PublishCounted implements queue.ReceiverCounter.
func (p countingPublisher) PublishCounted(ctx context.Context, msgs ...queue.Message) ([]int64, error) {
	p.intend(ctx, msgs)
	receivers, err := p.counter.PublishCounted(ctx, msgs...)
	p.conclude(msgs, receivers, err)
	return receivers, err
}

// RecordConsumer returns c with every delivery recorded in w before anyone sees
// it, and every ack and nack once the queue took it.
func RecordConsumer(c queue.Consumer, w *Writer) queue.Consumer {
	return recordingConsumer{c, w, w.consumers.Add(1)}
}

type recordingConsumer struct {
	queue.Consumer
	w      *Writer
	number uint32
}

// Receive implements queue.Consumer.
func (c recordingConsumer) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	ds, err := c.Consumer.Receive(ctx, max)
	c.record(Delivered, ds, nil)
	return ds, err
}

// Ack implements queue.Consumer.
func (c recordingConsumer) Ack(ctx context.Context, ds ...*queue.Delivery) error {
	err := c.Consumer.Ack(ctx, ds...)
	c.record(Acked, ds, err)
	return err
}

// Nack implements queue.Consumer.
func (c recordingConsumer) Nack(ctx context.Context, ds ...*queue.Delivery) error {
	err := c.Consumer.Nack(ctx, ds...)
	c.record(Nacked, ds, err)
	return err
}

func (c recordingConsumer) record(e Event, ds []*queue.Delivery, err error) {
	now := Now()
	for i, d := range ds {
		if !queue.SettledOK(err, i) {
			continue
		}
		// What came in one batch has an order too: a nanosecond apart keeps it.
		r := recordOf(e, d.ID, now+int64(i))
		r.Attempt, r.Arg = uint16(d.Attempt), c.number
		c.w.Append(r)
	}
}

// RecordEffect is for handlers: it records that the effect of a delivery was
// committed, and must be called after the commit and before the ack.
func RecordEffect(w *Writer, d *queue.Delivery) { recordHandled(w, Effect, d) }

// RecordEffectUnknown is for handlers whose commit got no answer.
func RecordEffectUnknown(w *Writer, d *queue.Delivery) { recordHandled(w, EffectUnknown, d) }

// RecordDeadLetter is for handlers that give a message up: to be called before
// its ack.
func RecordDeadLetter(w *Writer, d *queue.Delivery) { recordHandled(w, DeadLettered, d) }

func recordHandled(w *Writer, e Event, d *queue.Delivery) {
	r := recordOf(e, d.ID, Now())
	r.Attempt = uint16(d.Attempt)
	w.Append(r)
}

func recordOf(e Event, id string, at int64) Record {
	x := idOf(id)
	return Record{Event: e, Trial: x.Trial, Producer: x.Producer, Incarnation: x.Incarnation, Seq: x.Seq, At: at}
}
