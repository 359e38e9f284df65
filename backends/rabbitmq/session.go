package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"queuelab/queue"
)

// target is a broker and who we are to it.
type target struct {
	dialURL string // without our parameters; holds the password, never printed
	addr    string
	user    string
	vhost   string
}

func parseTarget(u *url.URL) (target, error) {
	plain := *u
	plain.RawQuery, plain.Fragment = "", ""
	t := target{dialURL: plain.String()}
	uri, err := amqp.ParseURI(t.dialURL)
	if err != nil {
		// The library's error may quote the URL, password and all.
		return target{}, errors.New("want amqp://user:password@host:port/vhost, with special characters percent-encoded")
	}
	t.addr = net.JoinHostPort(uri.Host, fmt.Sprint(uri.Port))
	t.user, t.vhost = uri.Username, uri.Vhost
	return t, nil
}

// session is one connection, from its log-in to its death.
type session struct {
	conn  *amqp.Connection
	sock  net.Conn
	done  chan struct{} // closed when the connection is gone
	cause error         // why, readable after done
	// gate holds a channel that is closed while the broker takes messages.
	gate atomic.Pointer[chan struct{}]
}

// dial opens a connection for the named purpose. ctx bounds the log-in only.
func (t target) dial(ctx context.Context, purpose string) (*session, error) {
	s := &session{done: make(chan struct{})}
	interrupted := func() bool { return ctx.Err() != nil }
	conn, err := amqp.DialConfig(t.dialURL, amqp.Config{
		Heartbeat:  10 * time.Second,
		Properties: amqp.Table{"product": "queuelab", "connection_name": "queuelab " + purpose},
		Dial: func(network, addr string) (net.Conn, error) {
			sock, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			s.sock = sock
			// Nothing in the library's log-in looks at ctx.
			stop := context.AfterFunc(ctx, func() { sock.Close() })
			interrupted = func() bool { return !stop() }
			return sock, nil
		},
	})
	switch {
	case interrupted():
		if err == nil {
			conn.CloseDeadline(time.Now())
		}
		return nil, t.explain(ctx.Err())
	case err != nil:
		return nil, t.explain(err)
	}
	s.conn = conn
	open := make(chan struct{})
	close(open)
	s.gate.Store(&open)
	go s.watch(conn.NotifyClose(make(chan *amqp.Error, 1)), conn.NotifyBlocked(make(chan amqp.Blocking, 8)))
	return s, nil
}

// watch reads the connection's notifications, all of them: the library stops
// reading from the broker for seconds when nobody does.
func (s *session) watch(closes chan *amqp.Error, blocks chan amqp.Blocking) {
	defer close(s.done)
	s.cause = errors.New("connection closed")
	for {
		select {
		case b, ok := <-blocks:
			if !ok {
				blocks = nil
				continue
			}
			gate := *s.gate.Load()
			select {
			case <-gate:
				if b.Active {
					shut := make(chan struct{})
					s.gate.Store(&shut)
				}
			default:
				if !b.Active {
					close(gate)
				}
			}
		case err, ok := <-closes:
			if ok {
				s.cause = fmt.Errorf("connection lost: %w", err)
			}
			return
		}
	}
}

func (s *session) alive() bool { return !s.conn.IsClosed() }

// close ends the connection within closeTimeout, also when a writer is stuck.
func (s *session) close() {
	_ = s.conn.CloseDeadline(time.Now().Add(closeTimeout)) // it is closed whatever this says
	<-s.done
}

// admin is the connection that looks into the queue and deletes it.
type admin struct {
	*session
	lock    chan struct{} // one operation at a time, taken with a context
	created bool          // the group's queue, by this connection
}

func (a *admin) close() { a.session.close() }

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

// bounded runs calls that the library does not bound. Where ctx ends first the
// connection is given up, for that alone interrupts them.
func (s *session) bounded(ctx context.Context, calls func() error) error {
	stop := context.AfterFunc(ctx, func() { s.sock.Close() })
	err := calls()
	if !stop() && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// declare makes the exchange, the group's queue and the binding. Each is a
// no-op where it exists.
func (c config) declare(ch *amqp.Channel) error {
	if err := ch.ExchangeDeclare(c.exchange, amqp.ExchangeFanout, true, false, false, false, nil); err != nil {
		return err
	}
	args := amqp.Table{amqp.QueueTypeArg: c.kind}
	if _, err := ch.QueueDeclare(c.queue, true, false, false, false, args); err != nil {
		return err
	}
	return ch.QueueBind(c.queue, "", c.exchange, false, nil)
}

var _ queue.Backlogger = (*rabbitQueue)(nil)
