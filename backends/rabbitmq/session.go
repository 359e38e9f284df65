package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// target is a broker and who we are to it.
type target struct {
	nodes []string // URLs without our parameters; they hold the password, never printed
	addr  string   // of all nodes, for people
	user  string
	vhost string
	// heartbeat is how often at least each side says something, in whole seconds.
	heartbeat time.Duration
}

func parseTarget(u *url.URL) (target, error) {
	var t target
	var addrs []string
	for _, host := range strings.Split(u.Host, ",") {
		plain := *u
		plain.Host, plain.RawQuery, plain.Fragment = host, "", ""
		uri, err := amqp.ParseURI(plain.String())
		if err != nil {
			// The library's error may quote the URL, password and all.
			return target{}, errors.New("want amqp://user:password@host:port/vhost, with special characters percent-encoded, and several host:port by commas")
		}
		t.nodes = append(t.nodes, plain.String())
		addrs = append(addrs, net.JoinHostPort(uri.Host, fmt.Sprint(uri.Port)))
		t.user, t.vhost = uri.Username, uri.Vhost
	}
	t.addr = strings.Join(addrs, ",")
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

// dial opens a connection for the named purpose, to the first node that lets us
// in. ctx bounds the log-in only; no node gets more than its share of the time,
// since one that is cut off never answers.
func (t target) dial(ctx context.Context, purpose string) (s *session, err error) {
	for i, node := range t.nodes {
		share, cancel := ctx, context.CancelFunc(func() {})
		if end, ok := ctx.Deadline(); ok && len(t.nodes) > 1 {
			share, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(len(t.nodes)-i))
		}
		s, err = t.dialNode(share, node, purpose)
		cancel()
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return s, err
}

func (t target) dialNode(ctx context.Context, node, purpose string) (*session, error) {
	s := &session{done: make(chan struct{})}
	interrupted := func() bool { return ctx.Err() != nil }
	var a *attentive
	conn, err := amqp.DialConfig(node, amqp.Config{
		Heartbeat:  t.heartbeat,
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
			a = newAttentive(sock)
			return a, nil
		},
	})
	switch {
	case interrupted():
		if err == nil {
			_ = conn.CloseDeadline(time.Now()) // given up
		}
		return nil, t.explain(ctx.Err())
	case err != nil:
		return nil, t.explain(err)
	}
	s.conn = conn
	a.watch(conn.Config.Heartbeat) // the broker may want it shorter
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
