package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"queuelab/queue"
)

const consumerTag = "queuelab"

// subscription is one session of a consumer: a connection, a channel, and the
// deliveries that belong to them and to no other.
type subscription struct {
	*session
	ch      *amqp.Channel
	queue   string
	autoAck bool
	// ready holds what Receive has not taken. There is room for all that the
	// prefetch lets the broker send, so that the library, whose own buffer has
	// no bound, keeps nothing back. Closed when no more will come.
	ready chan amqp.Delivery
	ended atomic.Bool   // the last one was put there
	quit  chan struct{} // closed by giveBack

	mu    sync.Mutex          // the channel's one user at a time, and below
	held  map[uint64]struct{} // tags that the broker waits for
	given bool                // back
}

// subscribe opens a session. The consumer sees every message from then on.
func (q *rabbitQueue) subscribe(ctx context.Context) (*subscription, error) {
	conn, err := q.dial(ctx, "consumer "+q.queue)
	if err != nil {
		return nil, err
	}
	s := &subscription{
		session: conn,
		queue:   q.queue,
		autoAck: q.autoAck,
		ready:   make(chan amqp.Delivery, q.prefetch),
		quit:    make(chan struct{}),
		held:    make(map[uint64]struct{}),
	}
	var deliveries <-chan amqp.Delivery
	err = conn.bounded(ctx, func() (err error) {
		if s.ch, err = conn.conn.Channel(); err != nil {
			return err
		}
		if err = q.declare(s.ch); err != nil {
			return err
		}
		if err = s.ch.Qos(q.prefetch, 0, false); err != nil {
			return err
		}
		deliveries, err = s.ch.Consume(q.queue, consumerTag, q.autoAck, false, false, false, nil)
		return err
	})
	if err != nil {
		conn.close()
		return nil, q.explain(err)
	}
	go s.pump(deliveries)
	return s, nil
}

func (s *subscription) pump(deliveries <-chan amqp.Delivery) {
	defer func() {
		s.ended.Store(true)
		close(s.ready)
	}()
	for d := range deliveries {
		if !s.autoAck {
			s.mu.Lock()
			s.held[d.DeliveryTag] = struct{}{}
			s.mu.Unlock()
		}
		select {
		case s.ready <- d:
		case <-s.quit:
			return
		}
	}
}

// alive reports whether Receive has something to wait for. Auto-acked
// deliveries outlive their connection, for the broker has forgotten them; it
// has taken back the others and will deliver them again.
func (s *subscription) alive() bool {
	return !s.ended.Load() || s.autoAck && len(s.ready) > 0
}

func (s *subscription) why() error {
	if s.conn.IsClosed() {
		<-s.done
		return s.cause
	}
	return errors.New("the broker ended the subscription: was the queue deleted?")
}

func (s *subscription) ack(tags []uint64) error {
	if s.autoAck {
		return nil
	}
	return s.settle("ack", tags, s.ch.Ack)
}

func (s *subscription) nack(tags []uint64) error {
	return s.settle("nack", tags, func(tag uint64, multiple bool) error {
		return s.ch.Nack(tag, multiple, true)
	})
}

// settle sends one frame for those tags that no other held tag is older than,
// since "multiple" takes all up to a tag, and one for each of the others. The
// lock covers the writes: a tag must not be settled twice, by number and by
// range, or the broker closes the channel.
func (s *subscription) settle(op string, tags []uint64, send func(tag uint64, multiple bool) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given {
		return fmt.Errorf("rabbitmq: %s: %w", op, queue.ErrLeaseLost)
	}
	for _, tag := range tags {
		delete(s.held, tag)
	}
	err := sendAll(tags, s.held, send)
	if err != nil {
		// Whatever stopped the write has closed the channel or will: the broker
		// takes back what it has no ack for.
		return fmt.Errorf("rabbitmq: %s: %w: %w", op, queue.ErrLeaseLost, err)
	}
	return nil
}

func sendAll(tags []uint64, held map[uint64]struct{}, send func(tag uint64, multiple bool) error) error {
	if len(tags) > 1 {
		slices.Sort(tags)
		oldest := uint64(math.MaxUint64)
		for tag := range held {
			oldest = min(oldest, tag)
		}
		n, _ := slices.BinarySearch(tags, oldest)
		if n > 1 {
			if err := send(tags[n-1], true); err != nil {
				return err
			}
			tags = tags[n:]
		}
	}
	for _, tag := range tags {
		if err := send(tag, false); err != nil {
			return err
		}
	}
	return nil
}

// giveBack returns what is unsettled to the queue, and closes the connection.
// Deliveries that Receive did not take go back, too, in their order.
func (s *subscription) giveBack() {
	_ = s.sock.SetDeadline(time.Now().Add(closeTimeout)) // nothing below may hang on a silent broker
	s.mu.Lock()
	s.given = true
	if !s.ch.IsClosed() {
		err := s.ch.Cancel(consumerTag, false)
		switch {
		case err != nil: // a dead connection, which gives back what is not acked
		case s.autoAck:
			s.republish()
		default:
			// All of them, also those that the library has not handed over.
			_ = s.ch.Nack(0, true, true)
		}
	}
	s.mu.Unlock()
	close(s.quit)
	s.session.close()
}

// republish puts what nobody has taken behind what is queued: the broker has
// forgotten it. Cancel has ended the deliveries, so ready is closed after the
// last one. An error is that of the deadline, or of a lost connection.
func (s *subscription) republish() {
	for d := range s.ready {
		err := s.ch.Publish("", s.queue, false, false, amqp.Publishing{
			Headers: d.Headers, MessageId: d.MessageId, DeliveryMode: d.DeliveryMode, Body: d.Body,
		})
		if err != nil {
			return
		}
	}
}
