package rabbitmq

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// attentive is a connection that hangs up once its process stood still for so
// long that the broker may have given it up: an ack is no question, and what is
// written to a socket whose other end is gone succeeds. The broker does so when it
// has heard nothing for two heartbeats, which the library sends twice as often, so
// that whoever says something after a longer silence was stopped, starved or asleep.
type attentive struct {
	net.Conn
	began time.Time
	most  atomic.Int64 // silence that is no matter, in ns; 0: any
	last  atomic.Int64 // when the last write ended, since began, in ns
}

func newAttentive(conn net.Conn) *attentive { return &attentive{Conn: conn, began: time.Now()} }

// watch begins to count. 0 is a connection without heartbeats.
func (a *attentive) watch(heartbeat time.Duration) {
	a.last.Store(int64(time.Since(a.began)))
	a.most.Store(int64(2 * heartbeat))
}

// Write implements net.Conn.
func (a *attentive) Write(b []byte) (int, error) {
	if err := a.alive(); err != nil {
		return 0, err
	}
	n, err := a.Conn.Write(b)
	if err == nil {
		err = a.alive() // it may have been stopped on its way there
	}
	a.last.Store(int64(time.Since(a.began)))
	return n, err
}

func (a *attentive) alive() error {
	most := time.Duration(a.most.Load())
	silent := time.Since(a.began) - time.Duration(a.last.Load())
	if most == 0 || silent <= most {
		return nil
	}
	_ = a.Close() // the broker takes back what it has no ack for
	return fmt.Errorf("this process said nothing for %v, and the broker gives a connection up after %v", silent.Round(time.Millisecond), most)
}
