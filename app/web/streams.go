package web

import (
	"bufio"
	"container/list"
	"encoding/json"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"queuelab/app/sale"
)

const (
	// DefaultStreams is how many event streams an instance has at a time.
	DefaultStreams = 4096
	// streamsEach is how many of them one buyer has: beyond it the oldest ends.
	streamsEach = 4
	// streamsAddress is how many one address has of those without a name.
	streamsAddress = 128
	// watchShare is the part of all streams that those about vouchers may be: the
	// rest is for buyers who wait for their order.
	watchShare = 0.75
	// beatEvery is how often a silent stream shows that it lives.
	beatEvery = 5 * time.Second
	// streamWrite is how long a reader may take nothing.
	streamWrite = 10 * time.Second
)

// Why a stream ends, as its last event says.
const (
	endDecided  = "decided"  // the order has its answer
	endDeadline = "deadline" // nothing more to say for now: ask again
	endReplaced = "replaced" // the same buyer has opened newer ones
	endCrowded  = "crowded"  // there are too many, and a buyer needs the room
	endStopping = "stopping" // this instance stops: ask another one
)

// streams are the answers that go on until something happens. They are bounded,
// because each has a goroutine and a connection.
type streams struct {
	most int

	mu       sync.Mutex
	stopped  bool
	all      int
	of       map[string][]*stream // by whose they are, the oldest first
	watchers list.List            // those about vouchers, the oldest first
}

type stream struct {
	user, whose string
	end         chan string   // gets why, at most once; "": the reader is gone
	watcher     *list.Element // nil: it is about an order
	out         bool          // it is not counted any more
}

// stop ends a stream, unless something else does already.
func (st *stream) stop(why string) {
	select {
	case st.end <- why:
	default:
	}
}

// listen notices that the reader is gone. What he sends is no request: the answer
// has said that it is the connection's last.
func (st *stream) listen(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Time{}) // one that cannot be set ends in Read
	var b [64]byte
	for {
		if _, err := conn.Read(b[:]); err != nil {
			st.stop("")
			return
		}
	}
}

func newStreams(most int) *streams {
	if most <= 0 {
		most = DefaultStreams
	}
	return &streams{most: most, of: map[string][]*stream{}}
}

// begin makes room for a stream about an order, or about vouchers, or refuses. A
// buyer is not refused while somebody without a name watches, and nobody who waits
// for an order is as long as anybody does.
func (s *streams) begin(user, address string, order bool) (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	whose := "user " + user
	if user == "" {
		whose = "address " + address
	}
	mine := s.of[whose]
	if s.stopped || user == "" && len(mine) >= streamsAddress {
		return nil, errCrowded()
	}
	if user != "" && len(mine) >= streamsEach {
		s.drop(mine[0], endReplaced)
	}
	if s.full(order) {
		victim := s.victim(user, order)
		if victim == nil {
			return nil, errCrowded()
		}
		s.drop(victim, endCrowded)
	}
	st := &stream{user: user, whose: whose, end: make(chan string, 1)}
	s.of[whose] = append(s.of[whose], st)
	if !order {
		st.watcher = s.watchers.PushBack(st)
	}
	s.all++
	return st, nil
}

func errCrowded() error {
	return &sale.Error{Code: sale.CodeBusy, Message: "too many watch at the moment: ask without a stream", RetryAfter: beatEvery}
}

func (s *streams) full(order bool) bool {
	return s.all >= s.most || !order && float64(s.watchers.Len()) >= max(1, watchShare*float64(s.most))
}

// victim is who makes room: the oldest watcher without a name, and for an order
// the oldest of all where each has one; nil: nobody.
func (s *streams) victim(user string, order bool) *stream {
	for e := s.watchers.Front(); e != nil && (user != "" || order); e = e.Next() {
		if st := e.Value.(*stream); st.user == "" {
			return st
		}
	}
	if e := s.watchers.Front(); e != nil && order {
		return e.Value.(*stream)
	}
	return nil
}

// drop ends a stream, whose room is somebody else's at once.
func (s *streams) drop(st *stream, why string) {
	st.stop(why)
	s.leave(st)
}

// leave is called with the lock held.
func (s *streams) leave(st *stream) {
	if st.out {
		return
	}
	st.out = true
	s.all--
	if st.watcher != nil {
		s.watchers.Remove(st.watcher)
	}
	mine := slices.DeleteFunc(s.of[st.whose], func(m *stream) bool { return m == st })
	if s.of[st.whose] = mine; len(mine) == 0 {
		delete(s.of, st.whose)
	}
}

func (s *streams) finish(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(st)
}

// stop ends all of them, and refuses those that come later.
func (s *streams) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for _, mine := range s.of {
		for _, st := range mine {
			st.stop(endStopping)
		}
	}
}

// count is how many there are.
func (s *streams) count() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return float64(s.all)
}

// events writes server-sent events.
type events struct {
	w    *bufio.Writer
	conn net.Conn
}

// send returns false when the reader is gone.
func (e events) send(event string, data any) bool {
	b, err := json.Marshal(data)
	if err != nil {
		return false
	}
	_, _ = e.w.WriteString("event: " + event + "\ndata: ")
	_, _ = e.w.Write(b)
	_, _ = e.w.WriteString("\n\n")
	return e.flush()
}

// beat is a comment, which readers pass over.
func (e events) beat() bool {
	_, _ = e.w.WriteString(":\n\n")
	return e.flush()
}

func (e events) flush() bool {
	// The server's own deadline is for answers that are there at once.
	_ = e.conn.SetWriteDeadline(time.Now().Add(streamWrite))
	return e.w.Flush() == nil
}

// stream answers with events: run writes them, and returns why it is over, or ""
// when the reader is gone. After it the context of the request is somebody
// else's, so run must not use it.
func (s *Server) stream(c *fiber.Ctx, st *stream, run func(events) string) error {
	c.Set(fiber.HeaderContentType, "text/event-stream; charset=utf-8")
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set("X-Accel-Buffering", "no") // for nginx
	conn := c.Context().Conn()
	c.Context().SetConnectionClose() // see listen
	c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
		defer s.streams.finish(st)
		go st.listen(conn) // until the connection is closed, which it is after this
		e := events{w, conn}
		if why := run(e); why != "" {
			e.send("end", fiber.Map{"why": why})
		}
	})
	return nil
}
