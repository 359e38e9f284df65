// Package wire reads what brokers and their clients say to each other: each
// command and each answer becomes one line for people. What it prints is
// evidence, so it says only what it has read: what it does not understand it
// names by kind and size, and passwords it never shows.
package wire

import (
	"fmt"
	"sync"
	"time"
)

// Line is one thing that was said.
type Line struct {
	At      time.Time // when its last byte was read
	Conn    int       // for the caller to fill in: a Decoder knows one connection
	Client  bool      // said by the client; else by the server
	Command string    // such as BRPOP, basic.publish, Produce v8; of an answer the command that it answers, where it is known
	Subject string    // key, channel, queue or exchange, topic, table or path; "" where there is none
	ID      string    // entry id, delivery tag, offset; "" where there is none
	Text    string    // all of it in one printable line of at most 300 runes
	Noise   bool      // true but dull: a handshake, a heartbeat, a fetch of nothing
}

// most is how many bytes a Decoder keeps of each direction.
const most = 64 << 10

// protocol is told what both sides say, in pieces of any size. What it returns
// does not depend on how they are cut.
type protocol interface {
	client(b []byte) []Line
	server(b []byte) []Line
}

// Decoder follows one connection from its beginning. Its methods may be called
// from any goroutine.
type Decoder struct {
	mu       sync.Mutex
	protocol protocol
}

// New returns a Decoder of what is spoken with a kind of broker: redis, rabbitmq,
// kafka or postgres; and of http, which is HTTP/1.1.
func New(kind string) (*Decoder, error) {
	var p protocol
	switch kind {
	case "redis":
		p = newRedis()
	case "rabbitmq":
		p = newAMQP()
	case "kafka":
		p = newKafka()
	case "postgres":
		p = newPostgres()
	case "http":
		p = newHTTP()
	default:
		return nil, fmt.Errorf("read the conversation with %q: nothing is known of it; known are redis, rabbitmq, kafka, postgres and http", kind)
	}
	return &Decoder{protocol: p}, nil
}

// Client returns what the client has said in full with these bytes.
func (d *Decoder) Client(b []byte) []Line {
	d.mu.Lock()
	defer d.mu.Unlock()
	return finish(d.protocol.client(b), true)
}

// Server returns what the server has said in full with these bytes.
func (d *Decoder) Server(b []byte) []Line {
	d.mu.Lock()
	defer d.mu.Unlock()
	return finish(d.protocol.server(b), false)
}

func finish(lines []Line, client bool) []Line {
	now := time.Now()
	for i := range lines {
		l := &lines[i]
		l.At, l.Client = now, client
		l.Command, l.Subject, l.ID, l.Text = clip(l.Command, 60), clip(l.Subject, 120), clip(l.ID, 120), clip(l.Text, mostText)
	}
	return lines
}
