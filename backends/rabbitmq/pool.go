package rabbitmq

import (
	"context"

	amqp "github.com/rabbitmq/amqp091-go"
)

// pool is a publisher's connection, with a channel for each of its lanes.
type pool struct {
	*session
	channels []*amqp.Channel // each is taken by its lane, once
}

func (q *rabbitQueue) openPool(ctx context.Context) (*pool, error) {
	s, err := q.dial(ctx, "publisher "+q.exchange)
	if err != nil {
		return nil, err
	}
	p := &pool{session: s, channels: make([]*amqp.Channel, q.channels)}
	err = s.bounded(ctx, func() (err error) {
		for i := range p.channels {
			if p.channels[i], err = q.openChannel(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.close()
		return nil, q.explain(err)
	}
	return p, nil
}

// openChannel also declares the topology: a channel that died because the
// exchange was deleted is of use again.
func (q *rabbitQueue) openChannel(s *session) (*amqp.Channel, error) {
	ch, err := s.conn.Channel()
	if err != nil {
		return nil, err
	}
	if err = q.declare(ch); err == nil && q.confirm {
		err = ch.Confirm(false)
	}
	if err != nil {
		ch.Close()
		return nil, err
	}
	return ch, nil
}
