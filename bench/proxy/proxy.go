// Package proxy is a TCP proxy that breaks connections in chosen ways: it loses
// one reply, resets, falls silent, is slow or narrow, and closes what is idle.
// What it does is changed while connections are open, and each event is counted
// once it has happened, so that a ledger records nothing that did not.
package proxy

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Direction is one of the two halves of a connection.
type Direction int

// ToServer is what clients say, ToClient what the server answers.
const (
	ToServer Direction = iota
	ToClient
	// Lost is what the server answered and no client gets: for Tap alone.
	Lost
)

// Rule is what happens to the bytes of one direction. The zero value lets them
// through.
type Rule struct {
	// Drop is a black hole: what comes is read and never delivered. While it is
	// on in either direction no end of a connection is told to the other side
	// either, so that the server keeps the ghosts of clients that have gone. A
	// connection that has lost something cannot go on: it is reset once Drop is
	// off in both directions.
	Drop bool
	// Dropped, where it is set, sees what Drop swallows, in order for each
	// connection. It must neither keep it nor call the proxy.
	Dropped func(b []byte)
	// Delay holds bytes back, with up to Jitter more by chance. What comes later
	// waits for them.
	Delay, Jitter time.Duration
	// BytesPerSecond is shared by all connections; 0: no limit.
	BytesPerSecond int
}

// Counts is what has happened since the start.
type Counts struct {
	Connections int64    // accepted
	Open        int64    // of them, now
	LostReplies int64    // cut off, and the connection reset
	Resets      int64    // connections reset by Reset
	IdleCloses  int64    // connections closed for idleness
	Dropped     [2]int64 // bytes swallowed, by Direction
	Held        [2]int64 // pieces that a delay or a limit held back, by Direction
}

// Match tells, of an answer that the server gives, whether it is the one meant.
// request is what it answers: at least the beginning of it. Neither may be kept.
type Match func(request, reply []byte) bool

// Proxy stands between clients and one server. Its methods may be called from
// any goroutine.
type Proxy struct {
	listener net.Listener
	target   string
	protocol Protocol
	running  sync.WaitGroup
	life     context.Context
	end      context.CancelFunc
	tapped   atomic.Pointer[tap] // nil: nobody taps

	mu      sync.Mutex
	closed  bool
	links   map[*link]struct{}
	rules   [2]Rule
	pace    [2]time.Time // when the next byte may go, where there is a limit
	idle    time.Duration
	losses  []*loss
	counts  Counts
	changed chan struct{} // closed at the next change; nil: nobody waits
}

// loss is one reply that is to be lost.
type loss struct {
	match Match
	done  chan struct{}
}

// New listens at an address of this machine and leads each connection on to
// target. listen may be "127.0.0.1:0", for any port.
func New(listen, target string, speaks Protocol) (*Proxy, error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("listen for a proxy of %s: %w", target, err)
	}
	p := &Proxy{listener: l, target: target, protocol: speaks, links: map[*link]struct{}{}}
	p.life, p.end = context.WithCancel(context.Background())
	p.running.Go(p.accept)
	return p, nil
}

// Addr is the host:port that clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close resets every connection, and listens no more. Nothing of the proxy runs
// once it has returned.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.end()
	err := p.listener.Close()
	for _, l := range p.open() {
		l.reset()
	}
	p.running.Wait()
	return err
}

// Set puts a rule in force, for open connections and for those to come.
func (p *Proxy) Set(d Direction, r Rule) {
	p.mu.Lock()
	was := p.rules[ToServer].Drop || p.rules[ToClient].Drop
	p.rules[d] = r
	p.pace[d] = time.Time{}
	var broken []*link
	if was && !p.silent() {
		for l := range p.links {
			if l.broken {
				broken = append(broken, l)
			}
		}
	}
	p.mu.Unlock()
	for _, l := range broken {
		l.reset()
	}
}

// silent is to be called with p.mu held.
func (p *Proxy) silent() bool { return p.rules[ToServer].Drop || p.rules[ToClient].Drop }

// CloseIdle closes each connection on which nothing has moved for so long, as a
// server or a firewall does; 0: none.
func (p *Proxy) CloseIdle(after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = after
	for l := range p.links { // they look again at how long they may wait
		_ = l.client.SetReadDeadline(time.Now())
		_ = l.server.SetReadDeadline(time.Now())
	}
}

// LoseReply loses the next answer that matches, whole, and resets its
// connection: the request was carried out, and the client never hears of it.
// The channel is closed once that has happened. Several may wait at a time; each
// loses one.
func (p *Proxy) LoseReply(m Match) (lost <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &loss{match: m, done: make(chan struct{})}
	p.losses = append(p.losses, l)
	return l.done
}

// Reset resets every open connection, and returns how many.
func (p *Proxy) Reset() int {
	n := 0
	for _, l := range p.open() {
		if l.reset() {
			n++
		}
	}
	p.count(func(c *Counts) { c.Resets += int64(n) })
	return n
}

// Counts is what has happened so far.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen()
}

func (p *Proxy) seen() Counts {
	c := p.counts
	c.Open = int64(len(p.links))
	return c
}

// Await waits until the counts are as wanted.
func (p *Proxy) Await(ctx context.Context, wanted func(Counts) bool) error {
	for {
		p.mu.Lock()
		c := p.seen()
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		changed := p.changed
		p.mu.Unlock()
		if wanted(c) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the proxy of %s saw only %+v: %w", p.target, c, ctx.Err())
		}
	}
}

func (p *Proxy) count(f func(*Counts)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.counts)
	p.tell()
}

// tell wakes those who wait for a change, with p.mu held.
func (p *Proxy) tell() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

func (p *Proxy) open() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

// lose finds the loss that an answer is meant by, with p.mu held.
func (p *Proxy) lose(request, reply []byte) *loss {
	for i, l := range p.losses {
		if l.match(request, reply) {
			p.losses = slices.Delete(p.losses, i, i+1)
			return l
		}
	}
	return nil
}

// lost confirms the loss on a link that was reset for it.
func (p *Proxy) lost(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(l.losing.done)
	l.losing = nil
	p.counts.LostReplies++
	p.tell()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			select {
			case <-p.life.Done():
				return
			case <-time.After(10 * time.Millisecond): // no file descriptor is left, say
				continue
			}
		}
		p.running.Go(func() { p.connect(client.(*net.TCPConn)) })
	}
}

func (p *Proxy) connect(client *net.TCPConn) {
	var d net.Dialer
	server, err := d.DialContext(p.life, "tcp", p.target)
	if err != nil {
		_ = client.SetLinger(0) // as the refusal that the client would have met
		client.Close()
		return
	}
	l := &link{proxy: p, client: client, server: server.(*net.TCPConn), talk: p.protocol.dialogue(), last: time.Now(), dead: make(chan struct{})}
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.links[l] = struct{}{}
		p.counts.Connections++
		l.number = int(p.counts.Connections)
		p.tell()
	}
	p.mu.Unlock()
	if closed {
		l.reset()
		return
	}
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	if l.losing != nil { // something else ended the link: another reply must be lost
		p.losses = append(p.losses, l.losing)
	}
	p.tell()
	p.mu.Unlock()
}
