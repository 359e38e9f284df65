package nats

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"queuelab/backends/internal/driver"
)

var errDown = errors.New("there is no connection")

// link is one connection, which the library dials again when it is lost. What
// is published meanwhile is refused, and what was under way is given up.
type link struct {
	*nats.Conn

	mu   sync.Mutex
	down chan struct{} // closed while there is no connection
	up   chan struct{} // closed while there is one
	lost func(error)   // called when a connection was lost
}

// dial opens a connection for the named purpose.
func (q *stream) dial(ctx context.Context, purpose string) (*link, error) {
	l := &link{down: make(chan struct{}), up: make(chan struct{})}
	close(l.up)
	o := nats.GetDefaultOptions()
	o.Servers, o.NoRandomize = q.servers, true
	o.Name = "queuelab " + purpose + " " + q.name
	o.Timeout, o.FlusherTimeout = q.timeout, q.timeout
	o.PingInterval, o.MaxPingsOut = 10*time.Second, 2
	o.MaxReconnect, o.ReconnectBufSize, o.IgnoreAuthErrorAbort = -1, -1, true
	o.CustomReconnectDelayCB = driver.Backoff
	o.DisconnectedErrCB = func(_ *nats.Conn, err error) { l.wasLost(err) }
	o.ReconnectedCB = func(*nats.Conn) { l.isBack() }
	o.AsyncErrorCB = func(*nats.Conn, *nats.Subscription, error) {} // the library's own prints to stderr

	type dialled struct {
		conn *nats.Conn
		err  error
	}
	done := make(chan dialled, 1) // nothing in the library's dialling looks at ctx
	go func() {
		c, err := o.Connect()
		done <- dialled{c, err}
	}()
	select {
	case d := <-done:
		if errors.Is(d.err, nats.ErrNoServers) {
			return nil, fmt.Errorf("nats: no server answers there: start one, or correct the URL: %w", d.err)
		}
		if d.err != nil {
			return nil, fmt.Errorf("nats connect: %w", d.err)
		}
		l.Conn = d.conn
		return l, nil
	case <-ctx.Done():
		go func() {
			if d := <-done; d.conn != nil {
				d.conn.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

func (l *link) wasLost(err error) {
	if err == nil {
		err = errDown
	}
	l.mu.Lock()
	select {
	case <-l.down:
	default:
		close(l.down)
		l.up = make(chan struct{})
	}
	lost := l.lost
	l.mu.Unlock()
	if lost != nil {
		lost(err)
	}
}

func (l *link) isBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.up:
	default:
		close(l.up)
		l.down = make(chan struct{})
	}
}

// state returns channels that are closed while, and when, there is a connection
// and none.
func (l *link) state() (up, down <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up, l.down
}

// await waits for a connection, until ctx ends.
func (l *link) await(ctx context.Context) error {
	up, _ := l.state()
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return errDown
	}
}

// asker sends messages that the server answers one by one. It sends nothing
// twice.
type asker struct {
	link  *link
	inbox string

	mu      sync.Mutex
	next    uint64
	waiting map[string]place // by the subject of the answer
}

// place is where an answer belongs.
type place struct {
	call  *call
	index int
}

type call struct {
	answers []answer
	left    int
	done    chan struct{}
}

// answer is what came of one message.
type answer struct {
	msg     *nats.Msg // the server's answer; nil: there is none
	refused bool      // it was certainly not sent
	err     error     // why there is no answer
}

func newAsker(l *link) (*asker, error) {
	a := &asker{link: l, inbox: nats.NewInbox() + ".", waiting: map[string]place{}}
	l.mu.Lock()
	l.lost = a.lost
	l.mu.Unlock()
	sub, err := l.Subscribe(a.inbox+"*", a.heard)
	if err == nil {
		err = sub.SetPendingLimits(-1, -1)
	}
	return a, err
}

// ask sends the messages, in order, and waits for all answers or for ctx. It
// sets their reply subjects.
func (a *asker) ask(ctx context.Context, msgs []*nats.Msg) []answer {
	c := &call{answers: make([]answer, len(msgs)), left: len(msgs), done: make(chan struct{})}
	a.mu.Lock() // also over the sending, so that calls do not mix
	for i, m := range msgs {
		a.next++
		m.Reply = fmt.Sprint(a.inbox, a.next)
		a.waiting[m.Reply] = place{c, i}
		if err := a.link.PublishMsg(m); err != nil {
			a.put(m.Reply, answer{refused: true, err: err})
		}
	}
	a.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
		a.mu.Lock()
		for _, m := range msgs {
			a.put(m.Reply, answer{err: ctx.Err()})
		}
		a.mu.Unlock()
	}
	return c.answers
}

// put fills in the answer to a message that still waits for one. The caller
// holds a.mu.
func (a *asker) put(reply string, r answer) {
	p, ok := a.waiting[reply]
	if !ok {
		return
	}
	delete(a.waiting, reply)
	p.call.answers[p.index] = r
	if p.call.left--; p.call.left == 0 {
		close(p.call.done)
	}
}

func (a *asker) heard(m *nats.Msg) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.put(m.Subject, answer{msg: m})
}

// lost gives up what was under way when the connection broke.
func (a *asker) lost(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for reply := range a.waiting {
		a.put(reply, answer{err: fmt.Errorf("the connection was lost before the answer: %w", err)})
	}
}

// noResponders reports whether the answer is the server's, that nobody listens.
func noResponders(m *nats.Msg) bool {
	return len(m.Data) == 0 && m.Header.Get("Status") == "503"
}
