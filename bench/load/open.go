package load

import (
	"context"
	"errors"
	"math"
	"time"

	"queuelab/bench/ledger"
	"queuelab/queue"
)

// Generator is an open loop: it sends message n when it is due, and never waits
// for an answer first. A queue that stalls thus meets the load that it would
// meet in life, and latency counted from due shows all of it.
type Generator struct {
	Pacer     Pacer
	Publisher queue.Publisher // as ledger.RecordPublisher returns it: the due times travel in the context
	Message   func(n uint64) queue.Message
	Count     uint64 // how many; 0: until ctx ends
	// Start is when Due counts from, as of ledger.Now; 0: now.
	Start int64
	// MaxInFlight bounds the Publish calls without an answer; a message that
	// has to wait for one of them is late, and counted as such. Default 1024.
	MaxInFlight int
	// Batch is the messages of one Publish call, sent when the last of them is
	// due; the others' latency includes that wait. Default 1.
	Batch int
	// Timeout ends a Publish call, at most 2 % early; its messages are then
	// unknown. Default 10 s.
	Timeout time.Duration

	wait func(ctx context.Context, until int64) error // tests have another clock
}

// Run sends until Count messages are sent or ctx ends, and returns once every
// Publish call has its answer or its Timeout. What ctx ends is the schedule: a
// call that is under way is not cut short, so that stopping leaves no unknown
// outcomes. The error is that of a Generator that cannot run; failed publishes
// are in Stats.
func Run(ctx context.Context, g Generator) (Stats, error) {
	if g.Pacer == nil || g.Publisher == nil || g.Message == nil {
		return Stats{}, errors.New("load: a generator needs a pacer, a publisher and messages")
	}
	g.defaults(ledger.Now())
	m := newMeter()
	r := newOpenRun(g, m)
	r.run(ctx)
	s := m.stats()
	s.Model = "open"
	s.judge(r)
	return s, nil
}

func (g *Generator) defaults(now int64) {
	if g.MaxInFlight <= 0 {
		g.MaxInFlight = 1024
	}
	if g.Batch <= 0 {
		g.Batch = 1
	}
	if g.Timeout <= 0 {
		g.Timeout = defaultTimeout
	}
	if g.Start == 0 {
		g.Start = now
	}
	if g.wait == nil {
		g.wait = WaitUntil
	}
}

// total is how many messages are sent at most.
func (g *Generator) total() uint64 {
	if g.Count == 0 {
		return math.MaxUint64
	}
	return g.Count
}

// due returns when message n is due, as of ledger.Now.
func (g *Generator) due(n uint64) int64 {
	due := g.Start + int64(g.Pacer.Due(n))
	if due < g.Start { // beyond the end of the clock
		return math.MaxInt64
	}
	return due
}

// dueBefore returns how many messages, in whole batches, were due before at.
func (g *Generator) dueBefore(at int64) uint64 {
	n := min(g.total(), CountBefore(g.Pacer, time.Duration(at-g.Start)))
	if n < g.total() {
		n -= n % uint64(g.Batch)
	}
	return n
}
