package web

import (
	"bufio"
	"encoding/json"
	"net"
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
	// beatEvery is how often a silent stream shows that it lives; it is also how
	// soon the server notices that the reader is gone.
	beatEvery = 5 * time.Second
	// streamWrite is how long a reader may take nothing.
	streamWrite = 10 * time.Second
)

// Why a stream ends, as its last event says.
const (
	endDecided  = "decided"  // the order has its answer
	endDeadline = "deadline" // nothing more to say for now: ask again
	endReplaced = "replaced" // the same buyer has opened newer ones
	endStopping = "stopping" // this instance stops: ask another one
)

// streams are the answers that go on until something happens. They are bounded,
// because each has a goroutine and a connection.
type streams struct {
	most int

	mu      sync.Mutex
	stopped bool
	all     int
	of      map[string][]*stream // by whose they are, the oldest first
}

type stream struct {
	whose string
	end   chan string // gets why, at most once
}

func newStreams(most int) *streams {
	if most <= 0 {
		most = DefaultStreams
	}
	return &streams{most: most, of: map[string][]*stream{}}
}

// begin makes room for a stream, or refuses.
func (s *streams) begin(user, address string) (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	whose := "user " + user
	if user == "" {
		whose = "address " + address
	}
	mine := s.of[whose]
	if s.stopped || s.all >= s.most || user == "" && len(mine) >= streamsAddress {
		return nil, &sale.Error{Code: sale.CodeBusy, Message: "too many watch at the moment: ask without a stream", RetryAfter: beatEvery}
	}
	if user != "" && len(mine) >= streamsEach {
		mine[0].end <- endReplaced
		mine = mine[1:]
	}
	st := &stream{whose: whose, end: make(chan string, 1)}
	s.of[whose] = append(mine, st)
	s.all++
	return st, nil
}

func (s *streams) finish(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	mine := s.of[st.whose]
	for i, m := range mine {
		if m == st {
			mine = append(mine[:i:i], mine[i+1:]...)
			break
		}
	}
	if s.of[st.whose] = mine; len(mine) == 0 {
		delete(s.of, st.whose)
	}
}

// stop ends all of them, and refuses those that come later.
func (s *streams) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for _, mine := range s.of {
		for _, st := range mine {
			select {
			case st.end <- endStopping:
			default: // it ends already
			}
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
	c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
		defer s.streams.finish(st)
		e := events{w, conn}
		if why := run(e); why != "" {
			e.send("end", fiber.Map{"why": why})
		}
	})
	return nil
}
