package load

import (
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"queuelab/queue"
)

const (
	// leastHeld is the share of the offered rate that must be achieved.
	leastHeld = 0.99
	// mostLate is how late 1 % of the messages, or the end of the plan, may be.
	mostLate = 10 * time.Millisecond
)

// Stats is what a loop did; Held says whether an open loop held its plan.
type Stats struct {
	Model          string // "open" or "closed"
	Sent, Accepted int64  // messages
	First, Last    int64  // when the first and the last Publish call began, as of ledger.Now
	// Due is, of an open loop, how many messages the plan had due by the end,
	// sent or not.
	Due int64
	// Planned is, of an open loop, the time from the first to the last of the
	// messages that were due; Took is the time from the first's due time until
	// they were sent, or until the loop ended without that.
	Planned, Took time.Duration
	// Offered and Achieved are messages a second over the same messages of the
	// plan: those due over Planned, and those sent over Took. 0 where there
	// are fewer than two. In a closed loop only Achieved is set: accepted, from
	// the first call to the last answer.
	Offered, Achieved float64
	// Lateness is how long after its due time a Publish call began. A batch is
	// due when its last message is. A closed loop has none.
	MaxLateness, P99Lateness, P50Lateness time.Duration
	// Err is why the first message that failed was not accepted; empty: all were.
	Err string
}

// Held says whether an open loop held its plan; the reason says what it missed,
// with the rate that was achieved: the queue, or the machine, was SATURATED,
// and the latencies are those of another load. A closed loop has no plan, and
// holds it.
func (s Stats) Held() (held bool, reason string) {
	switch {
	case s.Model == "closed":
		return true, ""
	case s.Due == 0:
		return false, "no message was due before the end"
	case float64(s.Sent) < leastHeld*float64(s.Due):
		return false, fmt.Sprintf("offered %.0f/s, sent %.0f/s: %d of the %d messages that were due were not sent", s.Offered, s.Achieved, s.Due-s.Sent, s.Due)
	case s.Achieved < leastHeld*s.Offered && s.Took-s.Planned > mostLate:
		return false, fmt.Sprintf("offered %.0f/s, sent %.0f/s: what was due within %v took %v", s.Offered, s.Achieved,
			s.Planned.Round(time.Millisecond), s.Took.Round(time.Millisecond))
	case s.P99Lateness > mostLate:
		return false, fmt.Sprintf("offered %.0f/s, sent %.0f/s, but late, as on a busy machine or with too few calls in flight: 1 %% of the messages left more than %v after they were due",
			s.Offered, s.Achieved, s.P99Lateness.Round(time.Millisecond))
	}
	return true, ""
}

// judge fills in what follows from the plan.
func (s *Stats) judge(r *openRun) {
	// A message that became due just before the end is not missed.
	due := max(r.sent, r.dueBefore(r.stopped-int64(mostLate)))
	if due == 0 {
		return
	}
	s.Due = int64(due)
	// As of a clock whose zero means nothing.
	first, planned, ended := r.due(0), r.due(due-1), s.Last
	if due > r.sent {
		ended = max(ended, r.stopped)
	}
	s.Planned, s.Took = time.Duration(planned-first), time.Duration(ended-first)
	if s.Due > 1 && s.Planned > 0 {
		s.Offered = float64(s.Due-1) / s.Planned.Seconds()
		s.Achieved = float64(max(0, s.Sent-1)) / s.Took.Seconds()
	}
}

// meter collects Stats from concurrent senders, each through a tally of its own.
type meter struct {
	mu       sync.Mutex
	s        Stats
	failed   int64 // when the call of s.Err began
	lateness *hdrhistogram.Histogram
}

func newMeter() *meter {
	return &meter{lateness: hdrhistogram.New(1, int64(time.Hour), 3)}
}

// tally keeps what one sender did until it is worth a lock: senders that met at
// a lock after every call would wait for each other, and not be ready to send.
// It must be flushed in the end.
type tally struct {
	meter *meter
	calls []outcome
}

type outcome struct {
	sent, late  int64
	n, accepted int64
	err         error
}

func (m *meter) tally() *tally { return &tally{meter: m, calls: make([]outcome, 0, tallied)} }

// record returns how many of the call's messages were accepted.
func (t *tally) record(sent, late int64, n int, err error) int64 {
	accepted := int64(0)
	for i := range n {
		if queue.OutcomeOf(err, i) == queue.Accepted {
			accepted++
		}
	}
	t.calls = append(t.calls, outcome{sent, late, int64(n), accepted, err})
	// Who holds the lock may be off its processor for long: nobody waits for it
	// who can go on sending.
	if m := t.meter; len(t.calls) >= tallied && m.mu.TryLock() {
		t.merge()
		m.mu.Unlock()
	} else if len(t.calls) >= maxTallied {
		t.flush()
	}
	return accepted
}

// tallied is how many calls are worth a lock, maxTallied worth waiting for one.
const tallied, maxTallied = 64, 64 << 10

func (t *tally) flush() {
	t.meter.mu.Lock()
	defer t.meter.mu.Unlock()
	t.merge()
}

// merge is for who has the meter's lock.
func (t *tally) merge() {
	m := t.meter
	for _, c := range t.calls {
		if m.s.Sent == 0 {
			m.s.First, m.s.Last = c.sent, c.sent
		}
		m.s.First, m.s.Last = min(m.s.First, c.sent), max(m.s.Last, c.sent)
		m.s.Sent += c.n
		m.s.Accepted += c.accepted
		m.s.MaxLateness = max(m.s.MaxLateness, time.Duration(c.late))
		_ = m.lateness.RecordValues( // clamped into its range
			min(max(c.late, 0), int64(time.Hour)), c.n)
		if c.err != nil && (m.s.Err == "" || c.sent < m.failed) {
			m.s.Err, m.failed = c.err.Error(), c.sent
		}
	}
	clear(t.calls) // lets go of the errors
	t.calls = t.calls[:0]
}

func (m *meter) stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.s
	s.P50Lateness = min(s.MaxLateness, time.Duration(m.lateness.ValueAtQuantile(50)))
	s.P99Lateness = min(s.MaxLateness, time.Duration(m.lateness.ValueAtQuantile(99)))
	return s
}
