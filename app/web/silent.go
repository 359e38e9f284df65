package web

import (
	"net"
	"sync"
)

// silent is a listener that knows which of its connections have never sent
// anything, as browsers and Go's client open them in advance. A shutdown of
// fasthttp closes those that wait between two requests, but for these it would
// wait until their read timeout.
type silent struct {
	net.Listener
	close sync.Once
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func trackSilent(ln net.Listener) *silent {
	return &silent{Listener: ln, conns: map[net.Conn]struct{}{}}
}

// Accept implements net.Listener.
func (s *silent) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
	return &countedConn{Conn: slack(c), raw: c, in: s}, nil
}

// Close implements net.Listener. A second one is no error: fasthttp's shutdown
// gives up at one, and waits for no request then.
func (s *silent) Close() (err error) {
	s.close.Do(func() { err = s.Listener.Close() })
	return err
}

func (s *silent) used(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

func (s *silent) closeSilent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
}

// countedConn reports its first byte, and its end.
type countedConn struct {
	net.Conn
	raw  net.Conn
	in   *silent
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
