package load

import (
	"context"
	"errors"
	"math"
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
	// MaxInFlight bounds the Publish calls without an answer; a message that
	// has to wait for one of them is late, and counted as such. Default 1024.
	MaxInFlight int
	// Batch is the messages of one Publish call, sent when the last of them is
	// due; the others' latency includes that wait. Default 1.
	Batch int
	// Timeout ends a Publish call, whose messages are then unknown. Default 10 s.
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
	g.defaults()
	m := newMeter()
	slots := make(chan struct{}, g.MaxInFlight)
	var calls sync.WaitGroup
	total := g.Count
	if total == 0 {
		total = math.MaxUint64
	}
	for n := uint64(0); n < total; {
		count := min(uint64(g.Batch), total-n)
		due := g.due(n + count - 1)
		if due == math.MaxInt64 {
			<-ctx.Done() // never due
			break
		}
		if g.wait(ctx, due) != nil || !acquire(ctx, slots) {
			break
		}
		first := n
		calls.Go(func() {
			defer func() { <-slots }()
			g.publish(ctx, m, first, count, due)
		})
		n += count
	}
	calls.Wait()
	s := m.stats()
	s.Model = "open"
	if s.Sent > 1 {
		s.Achieved = float64(s.Sent-1) / time.Duration(s.Last-s.First).Seconds()
		s.Offered = float64(s.Sent-1) / (g.Pacer.Due(uint64(s.Sent-1)) - g.Pacer.Due(0)).Seconds()
	}
	return s, nil
}

func (g *Generator) defaults() {
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
		g.Start = ledger.Now()
	}
	if g.wait == nil {
		g.wait = waitUntil
	}
}

// due returns when message n is due, as of ledger.Now.
func (g *Generator) due(n uint64) int64 {
	due := g.Start + int64(g.Pacer.Due(n))
	if due < g.Start { // beyond the end of the clock
		return math.MaxInt64
	}
	return due
}

func (g *Generator) publish(ctx context.Context, m *meter, first, count uint64, due int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.Timeout)
	defer cancel()
	ctx = ledger.WithDue(ctx, func(i int) int64 { return g.due(first + uint64(i)) })
	msgs := make([]queue.Message, count)
	for i := range msgs {
		msgs[i] = g.Message(first + uint64(i))
	}
	sent := ledger.Now()
	err := g.Publisher.Publish(ctx, msgs...)
	m.record(sent, sent-due, len(msgs), err)
}

func acquire(ctx context.Context, slots chan<- struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}
