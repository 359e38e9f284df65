package kafka

import (
	"context"
	"net"
	"sync"
)

// groupDialer keeps the connections of the group, which has no way to give up
// on a request by itself.
type groupDialer struct {
	dial func(ctx context.Context, addr string) (net.Conn, error)

	mu    sync.Mutex
	off   bool
	conns map[*groupConn]struct{}
}

type groupConn struct {
	net.Conn
	d *groupDialer
}

func (d *groupDialer) connect(ctx context.Context, _, addr string) (net.Conn, error) {
	conn, err := d.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	g := &groupConn{Conn: conn, d: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.off {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	if d.conns == nil {
		d.conns = map[*groupConn]struct{}{}
	}
	d.conns[g] = struct{}{}
	return g, nil
}

func (g *groupConn) Close() error {
	g.d.mu.Lock()
	delete(g.d.conns, g)
	g.d.mu.Unlock()
	return g.Conn.Close()
}

// cut closes every connection and lets no new one be made.
func (d *groupDialer) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = true
	for g := range d.conns {
		_ = g.Conn.Close()
	}
}

func (d *groupDialer) isOff() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.off
}
