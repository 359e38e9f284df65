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
	lift   *redis.Client // the block
	again  bool          // go-redis sends what failed again by itself
	mu     sync.Mutex
	conn   *redis.Conn
	id     atomic.Int64 // 0: none, or the server does not tell
}

// NewSession makes one, whose block is lifted through client; it dials when it
// is first used.
func NewSession(server Server, client *redis.Client) *Session {
	// For go-redis a raw command is none that blocks.
	o := *client.Options()
	o.ReadTimeout = Block + server.Timeout
	s := &Session{lift: client, again: server.Retries > 0}
	if s.again {
		// A connection taken out of the pool is never dialled again by go-redis.
		o.PoolSize = 1
		o.OnConnect = func(ctx context.Context, c *redis.Conn) error {
			id, err := c.ClientID(ctx).Result()
			s.id.Store(id)
			if IsReply(err) {
				err = nil
			}
			return err
		}
	}
	s.client = redis.NewClient(&o)
	return s
}

// Do sends a command that blocks for Block at most, and returns its reply. An
// error that is the server's own answer is a ReplyError. After any other the
// connection is given up, and the next Do dials another.
//
// No context bounds it: one that is shorter than the block could lose what the
// server hands over at that moment.
func (s *Session) Do(args ...any) (Reply, error) {
	ctx := context.Background()
	s.mu.Lock()
	defer s.mu.Unlock()
	cmd := redis.NewRawCmd(ctx, args...)
	if s.again {
		if err := s.client.Process(ctx, cmd); err != nil {
			return Reply{}, err
		}
		return newReply(cmd.Val())
	}
	if s.conn == nil {
		conn := s.client.Conn()
		id, err := conn.ClientID(ctx).Result()
		if err != nil && !IsReply(err) {
			_ = conn.Close() // it never worked; err says why
			return Reply{}, err
		}
		s.conn = conn
		s.id.Store(id)
	}
	if err := s.conn.Process(ctx, cmd); err != nil {
		s.drop()
		return Reply{}, err
	}
	return newReply(cmd.Val())
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
	_ = s.lift.ClientUnblock(ctx, id).Err() // the time limit remains
}

// Close closes the connection. Nothing may be under way.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop()
	return s.client.Close()
}

// Within bounds a command that belongs to no caller.
func (s Server) Within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), s.Timeout)
}
