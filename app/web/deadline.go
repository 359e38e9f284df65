package web

import (
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// deadlineSlack is by how much a connection's deadlines may be off.
const deadlineSlack = 500 * time.Millisecond

// slackConn sets a deadline only when a read or a write begins, and only where it
// moves by more than the slack. fasthttp wants three for each request, and each
// moves a timer: but a request that comes in one piece is read under the deadline
// of the wait before it, and one moment's deadline does for the next.
type slackConn struct {
	net.Conn
	read, write deadline
}

func slack(c net.Conn) *slackConn {
	now := time.Now()
	return &slackConn{c, deadline{apply: c.SetReadDeadline, began: now}, deadline{apply: c.SetWriteDeadline, began: now}}
}

// deadline is that of one direction. Times are kept as what has passed since it
// began; 0 is none.
type deadline struct {
	apply       func(time.Time) error
	began       time.Time
	wanted, set atomic.Int64
	busy        atomic.Bool // a read or a write is under way
}

// want sets the deadline at once for what is under way, and otherwise for what
// will be.
func (d *deadline) want(t time.Time) error {
	at := int64(0)
	if !t.IsZero() {
		at = max(1, int64(t.Sub(d.began)))
	}
	d.wanted.Store(at)
	if !d.busy.Load() {
		return nil
	}
	d.set.Store(at)
	return d.apply(t)
}

// begin is called before a read or a write, and end after it.
func (d *deadline) begin() error {
	d.busy.Store(true) // before the look at what is wanted: what comes later is set by want
	at, set := d.wanted.Load(), d.set.Load()
	if at == set || at != 0 && set != 0 && time.Duration(at-set).Abs() <= deadlineSlack {
		return nil
	}
	d.set.Store(at)
	if at == 0 {
		return d.apply(time.Time{})
	}
	return d.apply(d.began.Add(time.Duration(at)))
}

func (d *deadline) end() { d.busy.Store(false) }

// SetReadDeadline implements net.Conn.
func (c *slackConn) SetReadDeadline(t time.Time) error { return c.read.want(t) }

// SetWriteDeadline implements net.Conn.
func (c *slackConn) SetWriteDeadline(t time.Time) error { return c.write.want(t) }

// SetDeadline implements net.Conn.
func (c *slackConn) SetDeadline(t time.Time) error {
	return errors.Join(c.read.want(t), c.write.want(t))
}

// Read implements net.Conn.
func (c *slackConn) Read(b []byte) (int, error) {
	defer c.read.end()
	if err := c.read.begin(); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// Write implements net.Conn.
func (c *slackConn) Write(b []byte) (int, error) {
	defer c.write.end()
	if err := c.write.begin(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
