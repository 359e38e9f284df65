package redisconn

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"queuelab/queue"
)

// Commands is how messages become commands.
type Commands struct {
	// Append appends a message: a whole command, or an argument of one.
	Append func(dst []byte, m queue.Message) []byte
	// Head begins the one command that a round trip's messages are arguments of;
	// nil where each is a command. n is their number.
	Head func(dst []byte, n int) []byte
}

// Pipe is a connection on which concurrent callers share round trips, and the
// next round trip is sent while the server is still busy with the last one. A
// lone caller waits for nobody: it writes on its own goroutine.
//
// It is our own although go-redis has AutoPipeline: a caller whose context ends
// must get away although a socket cannot be interrupted, what was not yet sent
// can then be withdrawn for certain, and on a list many messages become one
// LPUSH, which costs the server much less than many commands.
type Pipe struct {
	server   Server
	commands Commands
	limit    int // messages in a round trip
	life     context.Context
	end      context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	wake    *sync.Cond // the writer, or a Close that waits
	wire    *Wire      // nil: none
	waiting []*call
	flying  []round // sent and not answered, in their order
	spare   []round // for their memory
	writing bool
	closed  bool
}

// call is one Publish: its messages as they go onto the wire, and what the
// server made of each.
type call struct {
	buf     []byte
	ends    []int // of each message in buf
	results []Sent
	sent    int // how many are with the server or beyond
	open    int // how many have no result
	done    chan struct{}
}

// part is what one round trip holds of a call.
type part struct {
	call     *call
	from, to int
}

type round struct {
	parts   []part
	n       int // messages
	expires time.Time
}

const (
	// roundTripBytes is what a round trip holds beyond its first message: more
	// would keep the server from everybody else, and gains nothing.
	roundTripBytes = 1 << 20
	// depth is how many round trips are under way at most: one that the server
	// works on, and one that it finds when it is done.
	depth = 2
	// direct is what surely fits into the socket's empty buffer, so that a
	// caller's own write does not block.
	direct = 16 << 10
)

// NewPipe starts one. It dials when there is something to send.
func NewPipe(server Server, limit int, commands Commands) *Pipe {
	p := &Pipe{server: server, limit: limit, commands: commands}
	p.life, p.end = context.WithCancel(context.Background())
	p.wake = sync.NewCond(&p.mu)
	p.running.Go(p.write)
	return p
}

// Do sends the messages of k, in order, and waits for their results. When ctx
// ends first it returns ctx.Err() and the number of messages that may have been
// sent; the others certainly were not, and k is not the caller's any more. After
// Close it is ErrClosed.
func (p *Pipe) Do(ctx context.Context, k *call) (sent int, err error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return 0, queue.ErrClosed
	}
	p.waiting = append(p.waiting, k)
	if p.wire != nil && !p.writing && len(p.flying) == 0 && len(p.waiting) == 1 &&
		len(k.buf) <= direct && len(k.ends) <= p.limit {
		p.send()
	} else if !p.writing && len(p.flying) < depth {
		p.wake.Broadcast()
	}
	p.mu.Unlock()

	select {
	case <-k.done:
		return len(k.ends), nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, w := range p.waiting {
		if w == k {
			p.waiting = append(p.waiting[:i:i], p.waiting[i+1:]...)
			break
		}
	}
	return k.sent, ctx.Err()
}

// write sends what the callers do not send themselves, and opens connections.
func (p *Pipe) write() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for p.writing || len(p.flying) == depth || len(p.waiting) == 0 && !p.closed {
			p.wake.Wait()
		}
		if len(p.waiting) == 0 {
			return
		}
		if p.wire == nil {
			p.dial()
		} else {
			p.send()
		}
	}
}

// dial opens a connection. Without one, all that waits is rejected: not a byte
// of it was sent. It gives up the lock meanwhile.
func (p *Pipe) dial() {
	p.writing = true
	p.mu.Unlock()
	wire, err := p.server.Dial(p.life)
	p.mu.Lock()
	p.writing = false
	if err != nil {
		p.reject(err)
		return
	}
	p.wire = wire
	p.running.Go(func() { p.read(wire) })
}

// reject rejects all that waits.
func (p *Pipe) reject(err error) {
	for _, k := range p.waiting {
		k.fill(k.sent, len(k.ends), Sent{Err: queue.Reject(err)})
		k.finish(len(k.ends) - k.sent)
	}
	clear(p.waiting)
	p.waiting = p.waiting[:0]
	p.wake.Broadcast()
}

// send takes a round trip from what waits, and writes it, for which it gives up
// the lock. One call may be larger than a round trip, and one round trip larger
// than a call: the first may have been begun before, the last may remain.
func (p *Pipe) send() {
	var r round
	if n := len(p.spare); n > 0 {
		r, p.spare = p.spare[n-1], p.spare[:n-1]
	}
	bytes, done := 0, 0
	for _, k := range p.waiting {
		from := k.sent
		for k.sent < len(k.ends) && r.n < p.limit && bytes < roundTripBytes {
			bytes += k.end(k.sent+1) - k.end(k.sent)
			k.sent++
			r.n++
		}
		if k.sent > from {
			r.parts = append(r.parts, part{k, from, k.sent})
		}
		if k.sent < len(k.ends) {
			break
		}
		done++
	}
	p.waiting = slices.Delete(p.waiting, 0, done)

	wire := p.wire
	if p.commands.Head != nil {
		wire.out = p.commands.Head(wire.out, r.n)
	}
	// Copied under the lock: once that is given up the calls may end, and their
	// memory serve others.
	for _, t := range r.parts {
		wire.out = append(wire.out, t.call.buf[t.call.end(t.from):t.call.end(t.to)]...)
	}
	r.expires = time.Now().Add(p.server.Timeout)
	if len(p.flying) == 0 {
		wire.Until(r.expires)
	}
	p.flying = append(p.flying, r)
	p.writing = true
	p.mu.Unlock()
	err := wire.Flush()
	p.mu.Lock()
	p.writing = false
	if err != nil {
		wire.Break(err) // read ends what is under way
	}
	if len(p.waiting) > 0 || p.closed {
		p.wake.Broadcast()
	}
}

// read gives what is under way its results, until the connection is broken.
func (p *Pipe) read(w *Wire) {
	for {
		answered := 0 // messages of the first round trip
		reply, err := p.next(w)
		if err == nil {
			answered, err = p.answer(w, reply)
		}
		p.mu.Lock()
		if err != nil {
			p.lose(w, answered, err)
			p.mu.Unlock()
			return
		}
		p.land(w)
		p.mu.Unlock()
	}
}

// next is the next reply. It outlives any time without one in which none is due.
func (p *Pipe) next(w *Wire) ([]byte, error) {
	for {
		reply, err := w.Next()
		if err == nil || !isTimeout(err) {
			return reply, err
		}
		p.mu.Lock()
		late := len(p.flying) > 0 && !time.Now().Before(p.flying[0].expires)
		p.expect(w)
		p.mu.Unlock()
		if late {
			return nil, err
		}
	}
}

// expect bounds the reads to come by when an answer is due.
func (p *Pipe) expect(w *Wire) {
	var due time.Time
	if len(p.flying) > 0 {
		due = p.flying[0].expires
	}
	w.Until(due)
}

// answer takes the results of the first round trip, reply being their first, and
// returns how many it has taken. Nobody else touches them, as nobody else ends
// a round trip.
func (p *Pipe) answer(w *Wire, reply []byte) (answered int, err error) {
	p.mu.Lock()
	if len(p.flying) == 0 {
		p.mu.Unlock()
		return 0, fmt.Errorf("a reply to nothing: %w", errProtocol)
	}
	parts := p.flying[0].parts
	p.mu.Unlock()
	s, err := result(reply)
	for _, t := range parts {
		for i := t.from; i < t.to; i++ {
			if answered > 0 && p.commands.Head == nil {
				if reply, err = p.next(w); err == nil {
					s, err = result(reply)
				}
			}
			if err != nil {
				return answered, err
			}
			t.call.results[i] = s
			answered++
		}
	}
	return answered, nil
}

func result(reply []byte) (s Sent, err error) {
	switch reply[0] {
	case '-':
		s.Err = failure(reply)
	case ':':
		s.Receivers, err = number(reply)
	}
	return s, err
}

// land ends the first round trip.
func (p *Pipe) land(w *Wire) {
	r := p.flying[0]
	p.flying = slices.Delete(p.flying, 0, 1)
	if len(p.flying) > 0 {
		p.expect(w)
	}
	for _, t := range r.parts {
		t.call.finish(t.to - t.from)
	}
	clear(r.parts)
	p.spare = append(p.spare, round{parts: r.parts[:0]})
	if len(p.waiting) > 0 || p.closed {
		p.wake.Broadcast()
	}
}

// lose ends all that is under way with an unknown outcome, but what was answered
// before.
func (p *Pipe) lose(w *Wire, answered int, err error) {
	w.Break(err)
	for _, r := range p.flying {
		for _, t := range r.parts {
			done := min(answered, t.to-t.from)
			answered -= done
			t.call.fill(t.from+done, t.to, Sent{Err: w.Broken()})
			t.call.finish(t.to - t.from)
		}
	}
	p.flying, p.wire = nil, nil
	p.wake.Broadcast()
}

// Close refuses new calls, and waits for those in flight, at most for patience.
func (p *Pipe) Close(patience time.Duration) {
	give := time.AfterFunc(patience, p.abort)
	p.mu.Lock()
	p.closed = true
	p.wake.Broadcast()
	for len(p.waiting) > 0 || len(p.flying) > 0 || p.writing {
		p.wake.Wait()
	}
	p.mu.Unlock()
	give.Stop()
	p.abort()
	p.running.Wait()
}

func (p *Pipe) abort() {
	p.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reject(queue.ErrClosed)
	if p.wire != nil {
		p.wire.Break(queue.ErrClosed)
	}
}

func (k *call) end(i int) int {
	if i == 0 {
		return 0
	}
	return k.ends[i-1]
}

func (k *call) fill(from, to int, s Sent) {
	for i := from; i < to; i++ {
		k.results[i] = s
	}
}

// finish counts n results, and ends the call with the last.
func (k *call) finish(n int) {
	if k.open -= n; k.open == 0 {
		k.done <- struct{}{} // it has room for one
	}
}
