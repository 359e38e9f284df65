package load

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"queuelab/queue"
)

// Stats is what a loop did. Whether the plan was held is Achieved against
// Offered, and the lateness.
type Stats struct {
	Model          string // "open" or "closed"
	Sent, Accepted int64  // messages
	First, Last    int64  // when the first and the last Publish call began, as of ledger.Now
	Offered        float64
	// Achieved is messages a second: sent, from the first to the last call, in
	// an open loop; accepted, from the first call to the last answer, in a closed one.
	Achieved float64
	// Lateness is how long after its due time a Publish call began. A batch is
	// due when its last message is. A closed loop has none.
	MaxLateness, P99Lateness time.Duration
	Err                      string // why the first message that failed was not accepted; empty: all were
}

// meter collects Stats from concurrent calls.
type meter struct {
	mu       sync.Mutex
	s        Stats
	lateness *hdrhistogram.Histogram
}

func newMeter() *meter {
	return &meter{lateness: hdrhistogram.New(1, int64(time.Hour), 3)}
}

// record returns how many of the call's messages were accepted.
func (m *meter) record(sent, late int64, n int, err error) int64 {
	accepted := int64(0)
	for i := range n {
		if queue.OutcomeOf(err, i) == queue.Accepted {
			accepted++
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.s.Sent == 0 {
		m.s.First, m.s.Last = sent, sent
	}
	m.s.First, m.s.Last = min(m.s.First, sent), max(m.s.Last, sent)
	m.s.Sent += int64(n)
	m.s.Accepted += accepted
	m.s.MaxLateness = max(m.s.MaxLateness, time.Duration(late))
	_ = m.lateness.RecordValue( // clamped into its range
		min(max(late, 0), int64(time.Hour)))
	if m.s.Err == "" && err != nil {
		m.s.Err = err.Error()
	}
	return accepted
}

func (m *meter) stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.s
	s.P99Lateness = min(s.MaxLateness, time.Duration(m.lateness.ValueAtQuantile(99)))
	return s
}
