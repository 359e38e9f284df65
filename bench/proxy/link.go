package proxy

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"
)

// link is one connection through the proxy.
type link struct {
	proxy          *Proxy
	number         int // among those accepted, from 1
	client, server *net.TCPConn
	once           sync.Once
	dead           chan struct{} // closed when it is closed or reset

	// With the proxy's mu held:
	talk   dialogue
	last   time.Time // when something moved
	broken bool      // it has lost bytes, or the end of one side
	losing *loss     // what this link is to be reset for, and is not yet
}

// piece is what was read at once, on its way.
type piece struct {
	bytes []byte
	due   time.Time
	cut   []byte // of what is lost: what is known of it
	lost  *loss  // what follows is lost: reset when the bytes are written
}

// pieces bounds what is on its way in one direction: as much as that, and the
// reader waits.
const (
	pieces    = 64
	pieceSize = 32 << 10
)

// run carries bytes until both directions have ended.
func (l *link) run() {
	var running sync.WaitGroup
	for d, ends := range [2][2]*net.TCPConn{{l.client, l.server}, {l.server, l.client}} {
		way := make(chan piece, pieces)
		running.Go(func() { l.read(Direction(d), ends[0], way) })
		running.Go(func() { l.write(Direction(d), ends[1], way) })
	}
	running.Wait()
	l.close()
}

// read fills the way until the connection ends, and then closes it.
func (l *link) read(d Direction, from *net.TCPConn, way chan<- piece) {
	defer close(way)
	buf := make([]byte, pieceSize)
	for {
		l.untilIdle(from)
		n, err := from.Read(buf)
		if n > 0 {
			if pc, ok := l.pass(d, buf[:n]); ok {
				select {
				case way <- pc:
				case <-l.dead:
					return
				}
				if pc.lost != nil {
					return
				}
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			if l.closeIdle() {
				return
			}
		case l.hidden():
			<-l.dead // nobody is told before the black hole ends
			return
		case errors.Is(err, io.EOF):
			return
		default:
			l.reset()
			return
		}
	}
}

// write delivers what is on the way.
func (l *link) write(d Direction, to *net.TCPConn, way <-chan piece) {
	for pc := range way {
		if !l.wait(d, pc.due) || !l.deliver(d, to, pc.bytes) {
			l.reset()
			return
		}
		if pc.lost != nil {
			l.proxy.show(l.number, Lost, pc.cut)
			if l.reset() {
				l.proxy.lost(l)
			}
			return
		}
	}
	select {
	case <-l.dead: // by a reset, which has no farewell
	default:
		_ = to.CloseWrite() // it may have gone already
	}
}

// pass decides what becomes of bytes that were read. It reports false where
// nothing is to be written.
func (l *link) pass(d Direction, b []byte) (pc piece, ok bool) {
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	l.last = now
	r := p.rules[d]
	if r.Drop {
		l.broken = true
		p.counts.Dropped[d] += int64(len(b))
		if r.Dropped != nil {
			r.Dropped(b)
		}
		p.tell()
		return piece{}, false
	}
	switch d {
	case ToServer:
		l.talk.request(b)
	case ToClient:
		said := b
		b, _ = l.talk.reply(b, func(request, reply []byte) bool {
			pc.lost = p.lose(request, reply)
			l.losing = pc.lost
			return pc.lost != nil
		})
		// Of frames the beginning may have been said before.
		if _, plain := l.talk.(*plainDialogue); plain && pc.lost != nil {
			pc.cut = bytes.Clone(said[len(b):])
		}
	}
	if r.Delay > 0 || r.Jitter > 0 {
		pc.due = now.Add(r.Delay)
		if r.Jitter > 0 {
			pc.due = pc.due.Add(rand.N(r.Jitter))
		}
	}
	pc.bytes = bytes.Clone(b)
	return pc, len(pc.bytes) > 0 || pc.lost != nil
}

// deliver writes, no faster than the limit allows.
func (l *link) deliver(d Direction, to *net.TCPConn, b []byte) bool {
	for len(b) > 0 {
		n, due := l.turn(d, len(b))
		if !l.wait(d, due) {
			return false
		}
		l.proxy.show(l.number, d, b[:n])
		if _, err := to.Write(b[:n]); err != nil {
			return l.hidden() // in a black hole nobody hears of it
		}
		b = b[n:]
	}
	return true
}

// turn says how many bytes may go, and when: under a limit as many as go in
// 20 ms, so that connections take turns.
func (l *link) turn(d Direction, n int) (int, time.Time) {
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	rate := p.rules[d].BytesPerSecond
	if rate <= 0 {
		return n, time.Time{}
	}
	n = min(n, max(1, rate/50))
	due := p.pace[d]
	if now := time.Now(); due.Before(now) {
		due = now
	}
	p.pace[d] = due.Add(time.Duration(n) * time.Second / time.Duration(rate))
	return n, due
}

// wait waits for a time, and counts that it did. It reports false where the
// link ended before.
func (l *link) wait(d Direction, due time.Time) bool {
	left := time.Until(due)
	if due.IsZero() || left <= 0 {
		select {
		case <-l.dead:
			return false
		default:
			return true
		}
	}
	l.proxy.count(func(c *Counts) { c.Held[d]++ })
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.dead:
		return false
	}
}

// hidden reports whether ends are hidden now, and notes that this one was.
func (l *link) hidden() bool {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	if !l.proxy.silent() {
		return false
	}
	l.broken = true
	return true
}

// untilIdle bounds the next read by what idleness is left.
func (l *link) untilIdle(from *net.TCPConn) {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	var until time.Time
	if l.proxy.idle > 0 {
		until = l.last.Add(l.proxy.idle)
	}
	_ = from.SetReadDeadline(until)
}

// closeIdle closes the link if it has been idle for too long.
func (l *link) closeIdle() bool {
	l.proxy.mu.Lock()
	idle := l.proxy.idle > 0 && time.Since(l.last) >= l.proxy.idle
	l.proxy.mu.Unlock()
	if !idle {
		return false
	}
	if l.close() {
		l.proxy.count(func(c *Counts) { c.IdleCloses++ })
	}
	return true
}

// close ends both connections in order, and reports whether it was the first to.
func (l *link) close() (first bool) {
	l.once.Do(func() {
		first = true
		close(l.dead)
		l.client.Close()
		l.server.Close()
	})
	return first
}

// reset ends both connections without a farewell.
func (l *link) reset() (first bool) {
	l.once.Do(func() {
		first = true
		close(l.dead)
		_ = l.client.SetLinger(0)
		_ = l.server.SetLinger(0)
		l.client.Close()
		l.server.Close()
	})
	return first
}
