package rabbitmq

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	amqp "github.com/rabbitmq/amqp091-go"

	"queuelab/queue"
)

// item is one message on its way to a lane's channel.
type item struct {
	call       *call
	index      int
	publishing amqp.Publishing
	route      string // the routing key
}

// lane owns one channel: run is the only goroutine that publishes on it, for
// channels are not to be shared. Callers feed it through in and never wait in
// the library, which blocks without regard to a context.
type lane struct {
	p      *publisher
	number int
	in     chan item

	// Of the present channel; run alone uses them.
	ch      *amqp.Channel
	on      *pool
	written uint64           // messages so far, the broker counts along
	sent    chan outstanding // to collect, closed with the channel's use
	slots   chan struct{}    // taken by each unconfirmed message: the window
	spoiled *atomic.Bool     // the channel is of no more use; see ready
	settled chan struct{}    // closed once all that was sent has its outcome
}

// outstanding is a message that was written and not confirmed.
type outstanding struct {
	item
	confirm *amqp.DeferredConfirmation
	number  string
}

func (l *lane) run() {
	defer l.abandon()
	for {
		select {
		case it := <-l.in:
			if err := l.ready(); err != nil {
				l.rejectQueued(it, err)
				continue
			}
			l.publish(it)
		case <-l.p.stop:
			return
		}
	}
}

// ready sees to it that there is an open channel with room in its window, and
// that the broker takes messages. After an error nothing that waits in the lane
// was written.
func (l *lane) ready() error {
	for {
		s, err := l.p.link.get(context.Background()) // ends with the publisher
		if err != nil {
			return err
		}
		spoiled := l.ch != nil && l.spoiled.Load()
		if spoiled || l.ch == nil || l.on != s || l.ch.IsClosed() {
			old, settled := l.ch, l.settled
			l.abandon()
			if spoiled {
				// A channel whose first message came while a quorum queue had no leader
				// nacks all others too, for ever. Another one may only follow once the
				// order of the messages is certain.
				select {
				case <-settled:
				case <-s.done:
				case <-l.p.stop:
					return queue.ErrClosed
				}
				_ = old.Close() // it is given up whether or not it closes well
			}
			if err := l.take(s); err != nil {
				return err
			}
		}
		select {
		case l.slots <- struct{}{}:
		case <-l.p.stop:
			return queue.ErrClosed
		}
		select {
		case <-*s.gate.Load():
			if !l.ch.IsClosed() {
				return nil
			}
		case <-s.done:
		case <-l.p.stop:
			return queue.ErrClosed
		}
		<-l.slots
	}
}

// take makes a channel of s the lane's own: the one that was opened for it, or
// another one after that has died.
func (l *lane) take(s *pool) (err error) {
	ch := s.channels[l.number]
	s.channels[l.number] = nil
	if ch == nil {
		if ch, err = l.p.q.openChannel(s.session); err != nil {
			return l.p.q.explain(err)
		}
	}
	l.ch, l.on, l.written = ch, s, 0
	l.slots = make(chan struct{}, l.p.q.window)
	l.spoiled, l.settled = &atomic.Bool{}, nil
	if l.p.q.confirm {
		l.sent = make(chan outstanding, l.p.q.window)
		// Room for a return of every message in the window: the library's
		// reader never waits for collect.
		returns := ch.NotifyReturn(make(chan amqp.Return, l.p.q.window))
		sent, slots, spoiled, settled := l.sent, l.slots, &atomic.Bool{}, make(chan struct{})
		l.spoiled, l.settled = spoiled, settled
		l.p.wg.Go(func() {
			defer close(settled)
			collect(ch, sent, slots, returns, func() { spoiled.Store(!l.p.q.rejects()) })
		})
	}
	return nil
}

// abandon gives up the channel. What is outstanding resolves when it dies.
func (l *lane) abandon() {
	if l.sent != nil {
		close(l.sent)
		l.sent = nil
	}
	l.ch, l.on = nil, nil
}

// publish writes one message, and uses the slot that ready has taken.
func (l *lane) publish(it item) {
	if !it.call.take(it.index) {
		<-l.slots
		return
	}
	o := outstanding{item: it}
	if l.p.q.confirm {
		// A returned message says no delivery tag, so it bears our own count.
		l.written++
		o.number = strconv.FormatUint(l.written, 36)
		it.publishing.CorrelationId = o.number
	}
	var err error
	o.confirm, err = l.ch.PublishWithDeferredConfirm(l.p.q.exchange, it.route, l.p.q.mandatory, false, it.publishing)
	switch {
	case err != nil:
		// Some of it, or all, may have left.
		it.call.finish(it.index, queue.Unknown, fmt.Errorf("rabbitmq: publish: %w", err))
		<-l.slots
	case l.p.q.confirm:
		l.sent <- o
	default:
		it.call.finish(it.index, queue.Accepted, nil)
		<-l.slots
	}
}

// rejectQueued rejects it and all that waits behind it: no byte of them was
// written, and each would wait for an attempt of its own to fail.
func (l *lane) rejectQueued(it item, err error) {
	for {
		it.call.finish(it.index, queue.Rejected, fmt.Errorf("publish: %w", queue.Reject(err)))
		select {
		case it = <-l.in:
		default:
			return
		}
	}
}
