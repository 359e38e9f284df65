package rabbitmq

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy is a TCP proxy before the broker that cuts, and holds back what one
// side says.
type proxy struct {
	t      testing.TB
	ln     net.Listener
	target string

	mu    sync.Mutex
	flows sync.Cond // changes of muted
	conns []net.Conn
	muted bool // the broker's answers are held back
}

func newProxy(t testing.TB) *proxy {
	t.Helper()
	u, err := url.Parse(lab(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, ln: ln, target: u.Host}
	p.flows.L = &p.mu
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			target := p.target
			p.mu.Unlock()
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, client, server)
			p.mu.Unlock()
			wg.Go(func() { p.copy(server, client, false) })
			wg.Go(func() { p.copy(client, server, true) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		p.cut()
		wg.Wait()
	})
	return p
}

func (p *proxy) copy(to, from net.Conn, answers bool) {
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		for answers && p.muted {
			p.flows.Wait()
		}
		p.mu.Unlock()
		if _, err := to.Write(buf[:n]); err != nil && err != io.EOF {
			return
		}
	}
}

// mute holds the broker's answers back from now on, or lets them go.
func (p *proxy) mute(on bool) {
	p.mu.Lock()
	p.muted = on
	p.flows.Broadcast()
	p.mu.Unlock()
}

// cut resets every connection, and drops what was held back.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	p.conns = nil
	p.muted = false
	p.flows.Broadcast()
}

// setTarget leads new connections elsewhere, and returns where they went.
func (p *proxy) setTarget(addr string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.target
	p.target = addr
	return old
}

func (p *proxy) url() string { return "amqp://guest:guest@" + p.ln.Addr().String() + "/" }
