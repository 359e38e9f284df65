package rabbitmq

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// admin is the connection that looks into the queue and deletes it.
type admin struct {
	*session
	lock    chan struct{} // one operation at a time, taken with a context
	created bool          // the group's queue, by this connection
}

func (q *rabbitQueue) openAdmin(ctx context.Context) (*admin, error) {
	s, err := q.dial(ctx, "admin "+q.queue)
	if err != nil {
		return nil, err
	}
	a := &admin{session: s, lock: make(chan struct{}, 1)}
	err = s.bounded(ctx, func() (err error) {
		if a.created, err = q.missing(s.conn); err != nil {
			return err
		}
		ch, err := s.conn.Channel()
		if err != nil {
			return err
		}
		defer ch.Close()
		return q.declare(ch)
	})
	if err != nil {
		s.close()
		return nil, q.explain(err)
	}
	return a, nil
}

// missing asks for the group's queue, on a channel that dies of a no.
func (c config) missing(conn *amqp.Connection) (bool, error) {
	ch, err := conn.Channel()
	if err != nil {
		return false, err
	}
	defer ch.Close()
	_, err = ch.QueueDeclarePassive(c.queue, true, false, false, false, nil)
	var ae *amqp.Error
	if errors.As(err, &ae) && ae.Code == amqp.NotFound {
		return true, nil
	}
	return false, err
}

// administer runs do on a channel of its own, since an error closes a channel.
func (q *rabbitQueue) administer(ctx context.Context, op string, do func(*amqp.Channel) error) error {
	a, err := q.admin.get(ctx)
	if err != nil {
		return err
	}
	select {
	case a.lock <- struct{}{}:
		defer func() { <-a.lock }()
	case <-ctx.Done():
		return ctx.Err()
	}
	err = a.bounded(ctx, func() error {
		ch, err := a.conn.Channel()
		if err != nil {
			return err
		}
		defer ch.Close()
		return do(ch)
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("rabbitmq: %s %s: %w", op, q.queue, err)
	}
	return err
}

// declare makes the exchange, the group's queue and its bindings. Each is a
// no-op where it exists.
func (c config) declare(ch *amqp.Channel) error {
	if err := ch.ExchangeDeclare(c.exchange, c.exchangeKind, true, false, false, false, nil); err != nil {
		return err
	}
	args := amqp.Table{amqp.QueueTypeArg: c.kind}
	if c.members > 0 {
		args["x-quorum-initial-group-size"] = int64(c.members)
	}
	if c.maxLength > 0 {
		args[amqp.QueueMaxLenArg] = int64(c.maxLength)
		args[amqp.QueueOverflowArg] = c.overflow
	}
	if _, err := ch.QueueDeclare(c.queue, true, false, false, false, args); err != nil {
		return err
	}
	for _, key := range c.bindings {
		if err := ch.QueueBind(c.queue, key, c.exchange, false, nil); err != nil {
			return err
		}
	}
	return nil
}
