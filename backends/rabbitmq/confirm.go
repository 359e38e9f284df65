package rabbitmq

import (
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"queuelab/queue"
)

var errUnroutable = errors.New("the broker has no queue for it: was the queue deleted? Opening it again declares it")

// collect finds the outcome of each message of one channel, in their order. It
// alone reads returns, so that what it knows of a message when its confirm has
// come is all there is: the broker returns a message before it acks it. nacked is
// called before the outcome of a message that the broker refused is known.
func collect(ch *amqp.Channel, sent <-chan outstanding, slots chan struct{}, returns <-chan amqp.Return, nacked func()) {
	returned := make(map[string]string)
	note := func(r amqp.Return, ok bool) {
		if ok {
			returned[r.CorrelationId] = r.ReplyText
		} else {
			returns = nil
		}
	}
	for o := range sent {
		for confirmed := false; !confirmed; {
			select {
			case <-o.confirm.Done():
				confirmed = true
			case r, ok := <-returns:
				note(r, ok)
			}
		}
		for queued := true; queued && returns != nil; {
			select {
			case r, ok := <-returns:
				note(r, ok)
			default:
				queued = false
			}
		}
		why, back := returned[o.number]
		delete(returned, o.number)
		switch {
		case back:
			o.call.finish(o.index, queue.Rejected, fmt.Errorf("rabbitmq: publish: %w", queue.Reject(fmt.Errorf("%s: %w", why, errUnroutable))))
		case o.confirm.Acked():
			o.call.finish(o.index, queue.Accepted, nil)
		case ch.IsClosed():
			// The library marks a channel closed first, and then resolves what is
			// outstanding as if it had been nacked. It was not.
			o.call.finish(o.index, queue.Unknown, errors.New("rabbitmq: publish: connection lost before the confirm"))
		default:
			nacked()
			o.call.finish(o.index, queue.Rejected, fmt.Errorf("rabbitmq: publish: %w", queue.Reject(errors.New("nacked by the broker"))))
		}
		<-slots
	}
}
