package web

import (
	"net"
	"sync"
)

// unused is a listener that knows which of its connections have never sent
// anything, as browsers and Go's client open them in advance. A shutdown of
// fasthttp closes those that wait between two requests, but for these it would
// wait until their read timeout.
type unused struct {
	net.Listener
	close sync.Once
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func trackUnused(ln net.Listener) *unused {
	return &unused{Listener: ln, conns: map[net.Conn]struct{}{}}
}

// Accept implements net.Listener.
func (u *unused) Accept() (net.Conn, error) {
	c, err := u.Listener.Accept()
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.conns[c] = struct{}{}
	return &countedConn{Conn: slack(c), raw: c, in: u}, nil
}

// Close implements net.Listener. A second one is no error: fasthttp's shutdown
// gives up at one, and waits for no request then.
func (u *unused) Close() (err error) {
	u.close.Do(func() { err = u.Listener.Close() })
	return err
}

func (u *unused) used(c net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.conns, c)
}

func (u *unused) closeUnused() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for c := range u.conns {
		_ = c.Close()
	}
}

// countedConn reports its first byte, and its end.
type countedConn struct {
	net.Conn
	raw  net.Conn
	in   *unused
	once sync.Once
}

// Read implements net.Conn.
func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.once.Do(func() { c.in.used(c.raw) })
	return n, err
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.once.Do(func() { c.in.used(c.raw) })
	return c.Conn.Close()
}
