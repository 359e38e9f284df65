package redistest

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"queuelab/bench/broker"
)

// Proxy stands between a queue and its server. It can lose one reply, hold
// one request or one reply back, fall silent, or cut every connection.
type Proxy struct {
	listener net.Listener
	server   *url.URL
	running  sync.WaitGroup

	mu       sync.Mutex
	change   *sync.Cond
	links    map[*link]struct{}
	loseText []byte // the reply to the next request with this text is lost
	lost     int
	silent   bool
	closed   bool

	stop, late stopover
}

// stopover is where the next request with the text waits, or its reply.
type stopover struct {
	text  []byte
	there chan struct{}
	on    bool
}

type link struct {
	client, server net.Conn
	lose, late     bool // the next reply
}

// NewProxy starts one, and stops it at the test's end.
func NewProxy(t testing.TB, server *broker.Broker) *Proxy {
	t.Helper()
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, server: u, links: map[*link]struct{}{}}
	p.change = sync.NewCond(&p.mu)
	p.running.Go(p.accept)
	t.Cleanup(p.Stop)
	return p
}

// URL is a queue's URL that leads through the proxy.
func (p *Proxy) URL(b Backend, name, query string) string {
	u := *p.server
	u.Scheme, u.Host = b.Scheme, p.listener.Addr().String()
	u.RawQuery = "queue=" + name + "&" + query
	return u.String()
}

// LoseReply lets the next request that holds the text through, and closes its
// connection when the server answers.
func (p *Proxy) LoseReply(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loseText = []byte(text)
}

// Stopover stops the next request that holds the text on its way to the server,
// until release is called. there is closed when it is here.
func (p *Proxy) Stopover(text string) (there <-chan struct{}, release func()) {
	return p.wait(&p.stop, text)
}

// LateReply stops the reply to the next request that holds the text, until release
// is called. there is closed when it is here.
func (p *Proxy) LateReply(text string) (there <-chan struct{}, release func()) {
	return p.wait(&p.late, text)
}

func (p *Proxy) wait(at *stopover, text string) (there <-chan struct{}, release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*at = stopover{text: []byte(text), there: make(chan struct{}), on: true}
	return at.there, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		at.on = false
		p.change.Broadcast()
	}
}

func (p *Proxy) stay(at *stopover) {
	close(at.there)
	for at.on && !p.closed {
		p.change.Wait()
	}
}

// Lost counts the replies that were lost.
func (p *Proxy) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Silence holds everything back, in both directions, until it is called again
// with false. No connection is closed.
func (p *Proxy) Silence(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = on
	p.change.Broadcast()
}

// Cut closes every connection.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.client.Close()
		l.server.Close()
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server.Host)
		if err != nil {
			client.Close()
			continue
		}
		l := &link{client: client, server: server}
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			client.Close()
			server.Close()
			return
		}
		p.links[l] = struct{}{}
		p.mu.Unlock()
		p.running.Go(func() { p.copy(l, server, client, true) })
		p.running.Go(func() { p.copy(l, client, server, false) })
	}
}

func (p *Proxy) copy(l *link, to io.WriteCloser, from io.ReadCloser, request bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !p.pass(l, buf[:n], request) {
			break
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			break
		}
	}
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// pass waits while the proxy is silent, and reports false where the bytes are
// those that must get lost.
func (p *Proxy) pass(l *link, b []byte, request bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.silent && !p.closed {
		p.change.Wait()
	}
	if request {
		if p.stop.text != nil && bytes.Contains(b, p.stop.text) {
			p.stop.text = nil
			p.stay(&p.stop)
		}
		if p.late.text != nil && bytes.Contains(b, p.late.text) {
			p.late.text, l.late = nil, true
		}
		if p.loseText != nil && bytes.Contains(b, p.loseText) {
			p.loseText, l.lose = nil, true
		}
		return true
	}
	if l.lose {
		l.lose = false
		p.lost++
		return false
	}
	if l.late {
		l.late = false
		p.stay(&p.late)
	}
	return true
}

// Stop closes every connection, and listens no more.
func (p *Proxy) Stop() {
	p.listener.Close()
	p.mu.Lock()
	p.closed, p.silent = true, false
	p.change.Broadcast()
	p.mu.Unlock()
	p.Cut()
	p.running.Wait()
}
