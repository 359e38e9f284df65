package live

import (
	"encoding/json"
	"sync"
	"time"
)

// history is what was told of a show, for those who come late, come back, or
// replay it.
type history struct {
	mu      sync.Mutex
	ticks   []json.RawMessage
	bytes   int
	events  int // records told one by one
	sent    time.Time
	changed chan struct{} // closed and replaced when there is more
	over    bool

	watchers int
	left     time.Time // when the last one left
}

func newHistory() *history { return &history{changed: make(chan struct{}), left: time.Now()} }

// quietest is how often a tick is sent though nothing has happened.
const quietest = time.Second

func (h *history) add(t tick, last bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(t.Lanes) == 0 && t.Speed == 0 && !last && time.Since(h.sent) < quietest {
		return
	}
	t.N = len(h.ticks) + 1
	b, err := json.Marshal(t)
	if err != nil {
		return // all of it is ours
	}
	h.sent = time.Now()
	h.ticks = append(h.ticks, b)
	h.bytes += len(b)
	close(h.changed)
	h.changed = make(chan struct{})
}

// room takes room for records that are told one by one, if there is some.
func (h *history) room(n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.events+n > maxEvents {
		return false
	}
	h.events += n
	return true
}

func (h *history) full() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bytes > maxHistory
}

func (h *history) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	close(h.changed)
	h.changed = make(chan struct{})
}

// after returns the ticks after number n, whether more are to come, and what is
// closed once they have.
func (h *history) after(n int) (some []json.RawMessage, over bool, more <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n < 0 || n > len(h.ticks) {
		n = 0 // of another show
	}
	return h.ticks[n:], h.over, h.changed
}

func (h *history) watch(by int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchers += by
	h.left = time.Now()
}

// unwatched is how long nobody has watched.
func (h *history) unwatched() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers > 0 {
		return 0
	}
	return time.Since(h.left)
}
