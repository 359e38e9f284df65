package redisconn

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"
)

// Wire is one connection to a server, for what is done for each message. It is
// our own although go-redis is here, since that boxes each argument, parses each
// reply into a tree of interfaces, and sends nothing before it has the last
// reply: together more work than the server's. What is done now and then goes
// through go-redis.
//
// It speaks RESP2. One goroutine may write, and one read.
type Wire struct {
	sock    net.Conn
	timeout time.Duration
	out     []byte
	id      int64 // the server's name for it; 0 where the server does not tell
	cause   atomic.Pointer[error]

	in   []byte
	from int  // where the reply begins that is being read
	at   int  // how far it has been looked at
	open int  // how many values of it are still to come; 0: none is being read
	seen bool // Ready has seen it whole
	to   int  // what follows was not read from the socket
}

// A connection's buffer grows to the largest reply, and shrinks again after one
// that was out of the ordinary.
const (
	wireBuffer = 64 << 10
	wireKeep   = 1 << 20
	largest    = 1 << 29 // of a text, by the protocol
)

// ReplyError is the server's own answer that a command failed.
type ReplyError string

func (e ReplyError) Error() string { return string(e) }

// RedisError makes it a redis.Error.
func (ReplyError) RedisError() {}

var errProtocol = errors.New("the server does not speak the Redis protocol")

// Dial opens one, logged in and in the right database. After an error nothing
// was sent but that.
func (s Server) Dial(ctx context.Context) (*Wire, error) {
	sock, err := (&net.Dialer{Timeout: s.Timeout}).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return nil, cmp.Or(ctx.Err(), s.explain(err))
	}
	w := &Wire{sock: sock, timeout: s.Timeout, in: make([]byte, wireBuffer)}
	if err := w.logIn(ctx, s); err != nil {
		w.Break(err)
		return nil, cmp.Or(ctx.Err(), s.explain(err))
	}
	return w, nil
}

func (w *Wire) logIn(ctx context.Context, s Server) error {
	stop := context.AfterFunc(ctx, func() { w.Break(ctx.Err()) })
	defer stop()
	n := 1
	switch {
	case s.User != "":
		w.Command("auth", s.User, s.Password)
	case s.Password != "":
		w.Command("auth", s.Password)
	default:
		n--
	}
	if s.DB != 0 {
		w.Command("select", strconv.Itoa(s.DB))
		n++
	}
	w.Command("client", "id")
	if err := w.Flush(); err != nil {
		return err
	}
	w.Until(time.Now().Add(w.timeout))
	for range n {
		if _, err := w.Answer(); err != nil {
			return err
		}
	}
	reply, err := w.Next()
	if err == nil && reply[0] == ':' { // another answer is a server that does not tell
		w.id, err = number(reply)
	}
	return err
}

// Command puts a command into the buffer that Flush sends.
func (w *Wire) Command(args ...string) {
	w.out = AppendHead(w.out, len(args))
	for _, arg := range args {
		w.out = AppendText(w.out, arg)
	}
}

// Flush sends what was put into the buffer. After an error nobody knows how
// much of it has gone.
func (w *Wire) Flush() error {
	_ = w.sock.SetWriteDeadline(time.Now().Add(w.timeout)) // the write says it, too
	_, err := w.sock.Write(w.out)
	w.out = w.out[:0]
	if cap(w.out) > wireKeep {
		w.out = nil
	}
	return err
}

// Until bounds the reads to come; zero lifts the bound.
func (w *Wire) Until(end time.Time) {
	_ = w.sock.SetReadDeadline(end) // the read says it, too
}

// Next reads one whole reply, as it is on the wire. It is valid until the next
// call. After a time-out another call goes on where this one has stopped.
func (w *Wire) Next() ([]byte, error) {
	for !w.seen {
		whole, err := w.scan()
		if err == nil && !whole {
			err = w.fill()
		}
		if err != nil {
			return nil, err
		}
		w.seen = whole
	}
	w.seen = false
	return w.in[w.from:w.at], nil
}

// Answer is Next, with the server's own answer that a command failed as an error.
func (w *Wire) Answer() ([]byte, error) {
	reply, err := w.Next()
	if err == nil {
		err = failure(reply)
	}
	return reply, err
}

// Ready reports whether a whole reply is there, so that Next will not block.
func (w *Wire) Ready() bool {
	if w.seen {
		return true
	}
	whole, err := w.scan()
	w.seen = whole
	return whole || err != nil
}

// scan looks at what was read, and reports whether it holds the whole reply.
func (w *Wire) scan() (bool, error) {
	if w.open == 0 {
		w.from, w.open = w.at, 1
	}
	for w.open > 0 {
		line := w.in[w.at:w.to]
		end := bytes.IndexByte(line, '\n')
		if end < 0 {
			return false, nil
		}
		next := w.at + end + 1
		switch line[0] {
		case '+', '-', ':':
			w.open--
		case '$', '*':
			n, err := number(line[:end+1])
			if err != nil {
				return false, err
			}
			switch {
			case n > largest:
				return false, errProtocol
			case n < 0:
				w.open--
			case line[0] == '*':
				w.open += int(n) - 1
			default:
				next += int(n) + 2
				if next > w.to {
					w.reserve(next - w.at)
					return false, nil
				}
				w.open--
			}
		default:
			return false, errProtocol
		}
		w.at = next
	}
	return true, nil
}

// reserve makes room for n bytes from at on.
func (w *Wire) reserve(n int) {
	if w.at+n > len(w.in) {
		w.move(max(len(w.in), w.at-w.from+n))
	}
}

// move puts what is not consumed to the beginning of a buffer of that size.
func (w *Wire) move(size int) {
	in := w.in
	if size != len(in) {
		in = make([]byte, size)
	}
	copy(in, w.in[w.from:w.to])
	w.in, w.from, w.at, w.to = in, 0, w.at-w.from, w.to-w.from
}

func (w *Wire) fill() error {
	switch {
	case w.from == w.to && len(w.in) > wireKeep:
		w.move(wireBuffer)
	case w.from == w.to:
		w.move(len(w.in))
	case w.to == len(w.in) && w.from > 0:
		w.move(len(w.in))
	case w.to == len(w.in):
		w.move(2 * len(w.in))
	}
	n, err := w.sock.Read(w.in[w.to:])
	w.to += n
	if n > 0 {
		return nil
	}
	return err
}

// Break closes the connection, which ends a read or write on it. The first cause
// is what Broken returns.
func (w *Wire) Break(cause error) {
	w.cause.CompareAndSwap(nil, &cause)
	_ = w.sock.Close() // it is given up whether or not it closes well
}

// Broken is why the connection was closed, nil where it was not.
func (w *Wire) Broken() error {
	if cause := w.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// AppendHead begins a command of n arguments, its name among them.
func AppendHead(dst []byte, n int) []byte {
	return appendLine(dst, '*', n)
}

// AppendText appends an argument.
func AppendText[T ~string | ~[]byte](dst []byte, arg T) []byte {
	dst = append(appendLine(dst, '$', len(arg)), arg...)
	return append(dst, '\r', '\n')
}

func appendLine(dst []byte, kind byte, n int) []byte {
	dst = strconv.AppendUint(append(dst, kind), uint64(n), 10)
	return append(dst, '\r', '\n')
}

// number is the one that a line holds.
func number(line []byte) (int64, error) {
	text, _ := bytes.CutSuffix(line[1:], []byte("\r\n"))
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	if len(text) == 0 || len(text) > 18 {
		return 0, errProtocol
	}
	var n int64
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, errProtocol
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, nil
}

// failure is the error that a reply is.
func failure(reply []byte) error {
	if reply[0] != '-' {
		return nil
	}
	return ReplyError(bytes.TrimSuffix(reply[1:], []byte("\r\n")))
}

// Reply is a whole reply, read value by value in its order. What it returns
// shares its memory.
type Reply struct{ rest string }

// Len is how many bytes are left.
func (r *Reply) Len() int { return len(r.rest) }

// Array enters an array and returns its length, -1 for none.
func (r *Reply) Array() (int, error) { return r.head('*') }

// Text returns a text, and false where there is none.
func (r *Reply) Text() (string, bool, error) {
	n, err := r.head('$')
	if n < 0 || err != nil {
		return "", false, err
	}
	text := r.rest[:n]
	r.rest = r.rest[n+2:]
	return text, true, nil
}

func (r *Reply) head(kind byte) (int, error) {
	for i := range len(r.rest) {
		if r.rest[i] != '\n' {
			continue
		}
		if r.rest[0] != kind {
			break
		}
		n, err := strconv.Atoi(r.rest[1 : i-1])
		r.rest = r.rest[i+1:]
		return n, err
	}
	return 0, fmt.Errorf("an unexpected reply: %w", errProtocol)
}
