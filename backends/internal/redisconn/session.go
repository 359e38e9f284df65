package redisconn

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Session is the one connection that a consumer blocks on. Its server-side id
// is known, so that the block can be lifted from another connection; a context
// cannot do that in go-redis.
type Session struct {
	client *redis.Client
	mu     sync.Mutex
	conn   *redis.Conn
	id     atomic.Int64 // 0: none, or the server does not tell
}

// NewSession makes one on client; it dials when it is first used.
func NewSession(client *redis.Client) *Session { return &Session{client: client} }

// Do runs fn on the connection. After an error that is not the server's own
// answer the connection is given up, and the next Do dials another.
func (s *Session) Do(ctx context.Context, fn func(ctx context.Context, c *redis.Conn) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		conn := s.client.Conn()
		id, err := conn.ClientID(ctx).Result()
		if err != nil && !IsReply(err) {
			_ = conn.Close() // it never worked; err says why
			return err
		}
		s.conn = conn
		s.id.Store(id)
	}
	err := fn(ctx, s.conn)
	if err != nil && !IsReply(err) {
		s.drop()
	}
	return err
}

func (s *Session) drop() {
	s.id.Store(0)
	if s.conn != nil {
		_ = s.conn.Close() // it is given up whether or not it closes well
		s.conn = nil
	}
}

// Unblock makes a blocking command under way return as if its time were up. A
// reply that is already under way still comes: nothing is lost by it. Where the
// server refuses, the command's own time limit does it.
func (s *Session) Unblock() {
	id := s.id.Load()
	if id == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), Block)
	defer cancel()
	_ = s.client.ClientUnblock(ctx, id).Err() // the time limit remains
}

// Close closes the connection. Nothing may be under way.
func (s *Session) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop()
}

// WithinBlock bounds a blocking command: its own time, and then as long as any
// answer may take. A context shorter than the block could lose what the server
// hands over at that moment.
func (s Server) WithinBlock() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), Block+s.Timeout)
}

// Within bounds a command that belongs to no caller.
func (s Server) Within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), s.Timeout)
}
