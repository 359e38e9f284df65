package proxy

import "sync"

// tap is somebody who listens.
type tap struct {
	mu  sync.Mutex
	see func(conn int, d Direction, b []byte) // nil: no more
}

// Tap shows what passes, on connections that are open as on those to come: the
// bytes of each connection and direction in their order, what the client says
// before the server gets it, and what the server says before the client gets it.
// conn is the connection's number, from 1 in the order of arrival. What the proxy
// drops is not shown. An answer that LoseReply cuts off is shown as Lost, where it is
// one whole answer: with Plain. Since it is shown just before it is written, the
// last bytes of a connection that was cut may have been shown in vain.
//
// see is called by one goroutine at a time, and traffic waits for it. It must
// neither keep the bytes nor call Tap or Close. A second Tap takes the place of
// the first; nil ends it. Once Tap has returned, the function before it is not
// called any more.
func (p *Proxy) Tap(see func(conn int, d Direction, b []byte)) {
	var next *tap
	if see != nil {
		next = &tap{see: see}
	}
	if was := p.tapped.Swap(next); was != nil {
		was.mu.Lock()
		was.see = nil
		was.mu.Unlock()
	}
}

func (p *Proxy) show(conn int, d Direction, b []byte) {
	t := p.tapped.Load()
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.see != nil {
		t.see(conn, d, b)
	}
}
