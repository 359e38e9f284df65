package redisconn

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Reply is an answer of the server as go-redis' RawCmd hands it over, read value
// by value in its order. What is read often is read so: the texts share the
// reply's memory, where the other commands of go-redis allocate for each value.
type Reply struct{ rest string }

// ReplyError is the server's own answer that a command failed.
type ReplyError string

func (e ReplyError) Error() string { return string(e) }

// RedisError makes it a redis.Error.
func (ReplyError) RedisError() {}

var errReply = errors.New("an unexpected reply")

// newReply is the error that a reply is, if it is one.
func newReply(raw []byte) (Reply, error) {
	if len(raw) > 0 && raw[0] == '-' {
		return Reply{}, ReplyError(strings.TrimSuffix(string(raw[1:]), "\r\n"))
	}
	return Reply{string(raw)}, nil
}

// Run runs a script, and sends it if the server does not have it.
func Run(ctx context.Context, c *redis.Client, s *redis.Script, keys []string, args ...any) (Reply, error) {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, "evalsha", s.Hash(), len(keys))
	for i := range keys {
		all = append(all, &keys[i])
	}
	all = append(all, args...)
	for first := true; ; first = false {
		cmd := redis.NewRawCmd(ctx, all...)
		if err := c.Process(ctx, cmd); err != nil {
			return Reply{}, err
		}
		reply, err := newReply(cmd.Val())
		if !first || !redis.HasErrorPrefix(err, "NOSCRIPT") {
			return reply, err
		}
		if err := s.Load(ctx, c).Err(); err != nil {
			return Reply{}, err
		}
	}
}

// Len is how many bytes are left.
func (r *Reply) Len() int { return len(r.rest) }

// None reports whether the whole reply is that there is nothing. A command that
// blocked in vain says so in another form than one that did not block.
func (r *Reply) None() bool { return r.rest == "*-1\r\n" || r.rest == "$-1\r\n" }

// Texts returns an array of texts, none for none.
func (r *Reply) Texts() ([]string, error) {
	n, err := r.Array()
	if n <= 0 || err != nil {
		return nil, err
	}
	texts := make([]string, n)
	for i := range texts {
		if texts[i], err = r.Text(); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// Array enters an array and returns its length, -1 for none.
func (r *Reply) Array() (int, error) {
	n, err := r.line('*')
	return int(n), err
}

// Int returns a number.
func (r *Reply) Int() (int64, error) { return r.line(':') }

// Text returns a text, "" for none.
func (r *Reply) Text() (string, error) {
	n, err := r.line('$')
	if n < 0 || err != nil {
		return "", err
	}
	if int(n) > len(r.rest)-len("\r\n") {
		return "", fmt.Errorf("%w: a text is cut short", errReply)
	}
	text := r.rest[:n]
	r.rest = r.rest[int(n)+len("\r\n"):]
	return text, nil
}

// line takes one that holds a number after its kind.
func (r *Reply) line(kind byte) (n int64, err error) {
	end := strings.IndexByte(r.rest, '\n') - 1
	if end < 2 || end > 20 || r.rest[0] != kind {
		return 0, fmt.Errorf("%w: want %q", errReply, kind)
	}
	digits := r.rest[1:end]
	r.rest = r.rest[end+len("\r\n"):]
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	for _, d := range []byte(digits) {
		if d < '0' || d > '9' {
			return 0, fmt.Errorf("%w: want a number", errReply)
		}
		n = n*10 + int64(d-'0')
	}
	if negative {
		n = -n
	}
	return n, nil
}
