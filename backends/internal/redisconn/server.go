// Package redisconn is what the Redis queues have in common: how they reach a
// server, what they read back from it, the connection that a consumer blocks on,
// and the publishers and consumers that several of them are made of.
package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"queuelab/backends/internal/params"
	"queuelab/queue"
)

// Block is how long the server holds a blocking read. It bounds how long a
// vanished consumer can still be handed messages; go-redis rounds less than a
// second up, and 0 would mean for ever.
const Block = time.Second

// Server is a Redis server, as a queue's URL names it.
type Server struct {
	Addr     string
	User     string
	Password string
	DB       int
	Timeout  time.Duration // to dial, to write, and for an answer beyond any blocking
	Retries  int           // of go-redis itself, behind everybody's back; 0: none, as it ought to be

	Sentinels string // host:port of each, by commas; "": Addr is the server
	Master    string // its name among the Sentinels
	Wait      int    // replicas that must have a message before it is accepted
}

// Parse reads [user:password@]host[:port][/db] and the parameters "timeout",
// "retries", "sentinel", "master" and "wait".
func Parse(u *url.URL, p *params.Params) (Server, error) {
	s := Server{
		Timeout: p.Duration("timeout", 3*time.Second, 100*time.Millisecond, time.Minute),
		Retries: p.Int("retries", 0, 0, 10),
	}
	if err := s.replication(p); err != nil {
		return s, err
	}
	if u.Hostname() == "" {
		if s.Sentinels != "" {
			return s, fmt.Errorf("the URL names no host: want %s://any/db?queue=name; with sentinel= it is not used", u.Scheme)
		}
		return s, fmt.Errorf("the URL names no host: want %s://host:port/db?queue=name", u.Scheme)
	}
	port := u.Port()
	if port == "" {
		port = "6379"
	}
	s.Addr = net.JoinHostPort(u.Hostname(), port)
	s.User = u.User.Username()
	s.Password, _ = u.User.Password()
	if s.User != "" && s.Password == "" {
		return s, errors.New("the URL has a user without a password: want user:password@host, or :password@host")
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		db, err := strconv.Atoi(path)
		if err != nil || db < 0 {
			return s, fmt.Errorf("the URL's path %q is no database number: want /0, /1 and so on", u.Path)
		}
		s.DB = db
	}
	return s, nil
}

// Client opens a client with at most pool connections. Nothing is dialled yet.
//
// Every default that could act behind our back is off: MaxRetries would send a
// command twice after a lost reply, a second dial would hide an outage, and the
// notifications and identity are commands that older servers answer with errors.
// The parameter "retries" turns the first on again, for those who want to see it.
func (s Server) Client(pool int) *redis.Client {
	retries := s.Retries
	if retries == 0 {
		retries = -1 // for go-redis 0 is its default, three
	}
	if s.Sentinels != "" {
		return s.failover(pool, retries)
	}
	return redis.NewClient(&redis.Options{
		Addr:                     s.Addr,
		Username:                 s.User,
		Password:                 s.Password,
		DB:                       s.DB,
		Protocol:                 2, // no pushes to look for before each reply
		MaxRetries:               retries,
		DialerRetries:            1,
		DialTimeout:              s.Timeout,
		ReadTimeout:              s.Timeout,
		WriteTimeout:             s.Timeout,
		PoolTimeout:              s.Timeout,
		ContextTimeoutEnabled:    true,
		PoolSize:                 pool,
		PipelinePoolSize:         -1, // pipelines take a connection of the one pool
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// Facts is what a server said about itself.
type Facts struct {
	Version string // "" where it does not tell
	AOF     bool
	Fsync   string // always, everysec, no; "" where it does not tell
	Evicts  bool   // a full server forgets whole keys, and so whole queues
	Policy  string // maxmemory-policy; "" where it does not tell

	Replicas int  // that have a message when it is accepted; not the server's word, but the URL's
	Failover bool // another server takes the place of a killed one, with what it has
}

// Durable reports whether an answered write survives kill -9 of the server.
// Snapshots do not count: they lose what came after the last one. Nor does a log
// where the server may throw the whole queue away to make room.
//
// Where a replica takes over it is its data that count, and only what it was
// waited for is certainly there.
func (f Facts) Durable() bool {
	if f.Failover {
		return f.Replicas > 0 && !f.Evicts
	}
	return f.AOF && !f.Evicts
}

// Confirm names who has a write when the server answers it. What the server
// does not tell is taken to be the weaker case.
func (f Facts) Confirm() queue.Confirm {
	switch {
	case f.Evicts:
		return queue.ConfirmMemory
	case f.Replicas > 0:
		return queue.ConfirmReplicas
	case f.AOF && f.Fsync == "always":
		return queue.ConfirmDisk
	case f.AOF:
		return queue.ConfirmOS
	}
	return queue.ConfirmMemory
}

// major is the first number of the version, 0 where it is not told.
func (f Facts) major() int {
	major, _, _ := strings.Cut(f.Version, ".")
	n, _ := strconv.Atoi(major) // 0 is what not told means
	return n
}

// Inspect verifies that the server answers, and reads how it keeps its data.
func (s Server) Inspect(ctx context.Context, c *redis.Client) (Facts, error) {
	if err := c.Ping(ctx).Err(); err != nil {
		return Facts{}, s.explain(err)
	}
	f := Facts{Replicas: s.Wait, Failover: s.Sentinels != ""}
	info, err := c.Info(ctx).Result()
	if err != nil && !IsReply(err) {
		return f, s.explain(err)
	}
	bounded := false
	for line := range strings.Lines(info) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name {
		case "redis_version":
			f.Version = value
		case "aof_enabled":
			f.AOF = value == "1"
		case "maxmemory":
			bounded = value != "0"
		case "maxmemory_policy":
			f.Policy = value
			f.Evicts = strings.HasPrefix(value, "allkeys-")
		}
	}
	f.Evicts = f.Evicts && bounded
	f.Fsync, err = setting(ctx, c, "appendfsync")
	if err != nil {
		return f, s.explain(err)
	}
	// While the log is rewritten this switches fsync off, whatever appendfsync says.
	off, err := setting(ctx, c, "no-appendfsync-on-rewrite")
	if err != nil {
		return f, s.explain(err)
	}
	if off == "yes" {
		f.Fsync = "no"
	}
	return f, nil
}

// setting is "" where the server refuses to tell, as hosted ones do.
func setting(ctx context.Context, c *redis.Client, name string) (string, error) {
	m, err := c.ConfigGet(ctx, name).Result()
	if err != nil && !IsReply(err) {
		return "", err
	}
	return m[name], nil
}

// explain puts what usually goes wrong into one sentence.
func (s Server) explain(err error) error {
	text := err.Error()
	switch {
	case strings.HasPrefix(text, "WRONGPASS"):
		return fmt.Errorf("the server refuses the user name or the password: %w", err)
	case strings.HasPrefix(text, "NOAUTH"):
		return fmt.Errorf("the server wants a password and the URL has none: %w", err)
	case strings.Contains(text, "without any password configured"):
		return fmt.Errorf("the URL has a password and the server wants none: %w", err)
	case strings.Contains(text, "DB index is out of range"):
		return fmt.Errorf("the server has no database %d: %w", s.DB, err)
	case strings.HasPrefix(text, "LOADING"):
		return fmt.Errorf("the server is still loading its data: %w", err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens at %s: %w", s.Addr, err)
	case errors.Is(err, context.Canceled):
		return err
	case isTimeout(err):
		return fmt.Errorf("no answer from %s: %w", s.Addr, err)
	}
	return fmt.Errorf("ask the server: %w", err)
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// IsReply reports whether err is the server's own answer: the command arrived,
// and the connection is still good.
func IsReply(err error) bool {
	var re redis.Error
	return errors.As(err, &re)
}

// NoSuchKey reports whether err is the server's answer that a key is not there.
func NoSuchKey(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "ERR no such key")
}

// NoGroup reports whether err is the server's answer that a stream or its group is
// not there. It has two texts: a reader that is blocked when the key goes gets
// another error than one that comes after.
func NoGroup(err error) bool {
	s := err.Error()
	return strings.HasPrefix(s, "NOGROUP") || strings.HasPrefix(s, "UNBLOCKED") || strings.Contains(s, " NOGROUP ")
}

// Outcome is what became of a write whose command ended with err.
func Outcome(err error) queue.Outcome {
	var op *net.OpError
	switch {
	case err == nil:
		return queue.Accepted
	case IsReply(err): // a write that is answered with an error was not done
		return queue.Rejected
	case errors.As(err, &op) && op.Op == "dial",
		errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrClosed):
		return queue.Rejected // there was no connection to send it on
	}
	return queue.Unknown
}
