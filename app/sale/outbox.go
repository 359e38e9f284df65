package sale

import (
	"context"
	"errors"
	"time"

	"queuelab/app/trace"
	"queuelab/queue"
)

// Outbox hands reservations to the queue.
type Outbox struct {
	Publisher queue.Publisher
	Timeout   time.Duration // bounds one publish, also the wait for room in a full queue
	Observer  Observer
	Tracer    *trace.Tracer // nil: nobody traces

	patience patience
}

// Message is what a reservation is in the queue.
func (r Reservation) Message() queue.Message {
	id := r.OrderID.String()
	return queue.Message{ID: id, Key: id, Body: r.Encode()}
}

// errUnheard: a broadcast that nobody heard is gone, whatever the broker said.
var errUnheard = errors.New("no consumer heard the message")

// Send publishes one reservation under its order id, which a retry keeps. by
// says who asks, for metrics. The error explains what is not Accepted.
func (o *Outbox) Send(ctx context.Context, r Reservation, by string) (queue.Outcome, error) {
	return o.Resend(ctx, r.OrderID.String(), r.Encode(), by)
}

// Resend is Send for a message as it is, also one that nobody can read.
func (o *Outbox) Resend(ctx context.Context, id string, body []byte, by string) (queue.Outcome, error) {
	// The buyer may hang up at any moment; the outcome matters to us all the same.
	began := time.Now()
	ctx = o.patience.within(ctx, began, o.Timeout)
	ctx, span := o.Tracer.Within(ctx, "publish", trace.Producer, "messaging.message.id", id, "by", by)
	m := queue.Message{ID: id, Key: id, Body: body, Headers: o.Tracer.Headers(ctx)}
	var err error
	if rc, ok := o.Publisher.(queue.ReceiverCounter); ok {
		var heard []int64
		if heard, err = rc.PublishCounted(ctx, m); err == nil && len(heard) == 1 && heard[0] == 0 {
			err = queue.Reject(errUnheard)
		}
	} else {
		err = o.Publisher.Publish(ctx, m)
	}
	outcome := queue.OutcomeOf(err, 0)
	span.End(err)
	o.Observer.Publish(outcome.String(), by, time.Since(began))
	return outcome, err
}
