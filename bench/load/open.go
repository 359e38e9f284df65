package load

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"sync"
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
	// Start is when Due counts from, as of ledger.Now, common to all producers
	// of a trial; 0: now.
	Start int64
	// Stride and Offset let several producers share one plan: this one's
	// message n is due when the plan's message n*Stride+Offset is. Split sets
	// them. Default 1 and 0: the whole plan.
	Stride, Offset uint64
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

// Split returns k generators that share g's plan and its Count, message by
// message in turns. The caller gives each one its own Message, since ids are
// dense per producer, and where wanted its own Publisher; and, to run them in
// several processes, one Start to all.
func Split(g Generator, k int) []Generator {
	gs := make([]Generator, max(1, k))
	stride := max(1, g.Stride)
	for i := range gs {
		gs[i] = g
		gs[i].Stride = stride * uint64(len(gs))
		gs[i].Offset = g.Offset + stride*uint64(i)
		gs[i].Count = share(g.Count, uint64(i), uint64(len(gs)))
	}
	return gs
}

// share is how many of the numbers below n are i modulo k.
func share(n, i, k uint64) uint64 {
	if n <= i {
		return 0
	}
	return (n-i-1)/k + 1
}

// Run sends until Count messages are sent or ctx ends, and returns once every
// Publish call has its answer or its Timeout. What ctx ends is the schedule: a
// call that is under way is not cut short, so that stopping leaves no unknown
// outcomes. The error is that of a Generator that cannot run; failed publishes
// are in Stats.
func Run(ctx context.Context, g Generator) (Stats, error) { return RunAll(ctx, g) }

// RunAll is Run for several producers at once, with the Stats of all of them
// together. Those without a Start get one in common.
func RunAll(ctx context.Context, gs ...Generator) (Stats, error) {
	now, m := ledger.Now(), newMeter()
	runs := make([]*openRun, len(gs))
	for i, g := range gs {
		if g.Pacer == nil || g.Publisher == nil || g.Message == nil {
			return Stats{}, errors.New("load: a generator needs a pacer, a publisher and messages")
		}
		g.defaults(now)
		runs[i] = newOpenRun(g, m)
	}
	var producers sync.WaitGroup
	for _, r := range runs {
		producers.Go(func() { r.run(ctx) })
	}
	producers.Wait()
	s := m.stats()
	s.Model = "open"
	s.judge(runs)
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
	if g.Stride == 0 {
		g.Stride = 1
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
	high, low := bits.Mul64(n, g.Stride)
	planned, carry := bits.Add64(low, g.Offset, 0)
	if high > 0 || carry > 0 {
		return math.MaxInt64
	}
	due := g.Start + int64(g.Pacer.Due(planned))
	if due < g.Start { // beyond the end of the clock
		return math.MaxInt64
	}
	return due
}

// dueBefore returns how many messages, in whole batches, were due before at.
func (g *Generator) dueBefore(at int64) uint64 {
	n := min(g.total(), share(CountBefore(g.Pacer, time.Duration(at-g.Start)), g.Offset, g.Stride))
	if n < g.total() {
		n -= n % uint64(g.Batch)
	}
	return n
}
