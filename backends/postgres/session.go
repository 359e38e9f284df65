package postgres

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"queuelab/backends/internal/driver"
	"queuelab/queue"
)

// session is one connection, dialled when it is first needed, and again once it
// is dead. One caller at a time has it.
type session struct {
	config *pgx.ConnConfig
	hello  string        // the first statement on each new connection; "": none
	turn   chan struct{} // holds a token while somebody has the connection
	rung   atomic.Bool   // a notification has come

	conn   *pgx.Conn
	used   time.Time // when its last use ended
	closed bool
}

// dialError: there was no connection, so that nothing was sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

func newSession(server *pgx.ConnConfig, hello string) *session {
	s := &session{config: server.Copy(), hello: hello, turn: make(chan struct{}, 1)}
	s.config.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) { s.rung.Store(true) }
	return s
}

// do lends the connection. ctx bounds the wait for it, and its making.
func (s *session) do(ctx context.Context, use func(*pgx.Conn) error) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return &dialError{ctx.Err()}
	}
	if s.closed {
		return queue.ErrClosed
	}
	// A connection that has died meanwhile says so only when it is used, and
	// then nobody can tell what became of a statement.
	const rested = time.Second
	if s.conn != nil && !s.conn.IsClosed() && time.Since(s.used) > rested && s.conn.Ping(ctx) != nil {
		s.drop()
	}
	if s.conn == nil || s.conn.IsClosed() {
		if err := s.dial(ctx); err != nil {
			return &dialError{err}
		}
	}
	defer func() { s.used = time.Now() }()
	return use(s.conn)
}

func (s *session) dial(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, s.config)
	if err != nil {
		return err
	}
	s.conn = conn
	if s.hello == "" {
		return nil
	}
	if _, err := conn.Exec(ctx, s.hello); err != nil {
		s.drop()
		return err
	}
	return nil
}

// dead reports whether the last use has found the connection dead.
func (s *session) dead() bool {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	return s.conn != nil && s.conn.IsClosed()
}

// drop ends the connection, within a second.
func (s *session) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.conn.Close(ctx) // it is given up whether or not the server hears of it
	s.conn = nil
}

// close waits for whoever has the connection, and ends it for good.
func (s *session) close() {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.closed = true
	if s.conn != nil {
		s.drop()
	}
}

// bell tells the consumers that there is something to claim. What is rung while
// it rings is one ring.
type bell struct {
	q      *table
	pulled chan struct{}
	done   chan struct{}
	ended  chan struct{}
}

func newBell(q *table) *bell {
	b := &bell{q: q, pulled: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{})}
	go b.run()
	return b
}

func (b *bell) ring() {
	if b.q.notify {
		driver.Signal(b.pulled)
	}
}

func (b *bell) run() {
	defer close(b.ended)
	for open := true; open; {
		select {
		case <-b.done:
			open = false
		case <-b.pulled:
			b.notify()
		}
	}
	select { // what the last consumer gave back
	case <-b.pulled:
		b.notify()
	default:
	}
}

func (b *bell) notify() {
	// A ring that does not come through costs the consumers a poll.
	_ = b.q.administer(context.Background(), "notify", func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, `SELECT pg_notify($1, '')`, b.q.name)
		return err
	})
}

func (b *bell) close() {
	close(b.done)
	<-b.ended
}
