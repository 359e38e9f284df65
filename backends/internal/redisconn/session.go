package redisconn

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Session is the one connection that a consumer blocks on. Its server-side id
// is known, so that the block can be lifted from another connection.
type Session struct {
	server Server
	client *redis.Client // lifts the block
	mu     sync.Mutex
	wire   *Wire
	id     atomic.Int64 // 0: none, or the server does not tell
}

// NewSession makes one; it dials when it is first used.
func NewSession(server Server, client *redis.Client) *Session {
	return &Session{server: server, client: client}
}

// Do sends a command that blocks for Block at most, and returns its reply. A
// ReplyError is the server's own answer; after any other error the connection is
// given up, and the next Do dials another.
//
// No context bounds it: one that is shorter than the block could lose what the
// server hands over at that moment.
func (s *Session) Do(args ...string) (Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wire == nil {
		ctx, cancel := s.server.Within()
		defer cancel()
		wire, err := s.server.Dial(ctx)
		if err != nil {
			return Reply{}, err
		}
		s.wire = wire
		s.id.Store(wire.id)
	}
	s.wire.Command(args...)
	err := s.wire.Flush()
	var reply []byte
	if err == nil {
		s.wire.Until(time.Now().Add(Block + s.server.Timeout))
		reply, err = s.wire.Next()
	}
	if err != nil {
		s.drop(err)
		return Reply{}, err
	}
	if err := failure(reply); err != nil {
		return Reply{}, err
	}
	return Reply{string(reply)}, nil
}

func (s *Session) drop(cause error) {
	s.id.Store(0)
	if s.wire != nil {
		s.wire.Break(cause)
		s.wire = nil
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
	s.drop(redis.ErrClosed)
}

// Within bounds a command that belongs to no caller.
func (s Server) Within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), s.Timeout)
}
