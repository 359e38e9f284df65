package load

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"queuelab/bench/ledger"
	"queuelab/queue"
)

// openRun is a Generator at work. One goroutine waits for the due times and
// queues each call for the senders, which are reused: the one that keeps the
// time never waits for a queue, a meter or a ledger. A call that is queued has
// a slot already, so that it waits for a processor and nothing else.
type openRun struct {
	Generator
	meter   *meter
	slots   chan struct{} // of MaxInFlight: one for each call that is queued or has no answer
	calls   chan call
	senders sync.WaitGroup
	ready   atomic.Int64 // senders that are not in Publish: they take what is queued
	cores   int64

	sent    uint64 // messages handed to senders
	stopped int64  // when the schedule ended, as of ledger.Now
}

// call is one Publish call.
type call struct {
	first, count uint64
	due          int64 // of its last message
}

func newOpenRun(g Generator, m *meter) *openRun {
	return &openRun{
		Generator: g, meter: m, cores: int64(runtime.GOMAXPROCS(0)),
		slots: make(chan struct{}, g.MaxInFlight), calls: make(chan call, g.MaxInFlight),
	}
}

func (r *openRun) run(ctx context.Context) {
	base := context.WithoutCancel(ctx)
	for r.sent < r.total() {
		c := call{first: r.sent, count: min(uint64(r.Batch), r.total()-r.sent)}
		if c.due = r.due(c.first + c.count - 1); c.due == neverDue {
			<-ctx.Done()
			break
		}
		if r.wait(ctx, c.due) != nil || !acquire(ctx, r.slots) {
			break
		}
		r.calls <- c // has room, as there was a slot
		r.grow(base)
		r.sent += c.count
	}
	r.stopped = ledger.Now()
	close(r.calls)
	r.senders.Wait()
}

// grow starts a sender where there are more calls than senders to take them,
// and fewer than processors to run on. It is asked after each call is queued
// and after each sender stops being ready, so that none is left lying. More
// would not be faster, and a plan that is behind would start thousands.
func (r *openRun) grow(base context.Context) {
	ready := r.ready.Load()
	if ready < int64(len(r.calls)) && ready < r.cores {
		r.ready.Add(1)
		r.senders.Go(func() { r.send(base) })
	}
}

func acquire(ctx context.Context, slots chan<- struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	default:
	}
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// send publishes what is queued.
func (r *openRun) send(base context.Context) {
	// One context with a time-out serves all calls that begin within a small
	// part of it. The due times are asked for before Publish returns, so that
	// one function does for all calls of a sender.
	var c call
	due := func(i int) int64 { return r.due(c.first + uint64(i)) }
	var ctx context.Context
	var renew int64
	cancel := context.CancelFunc(func() {})
	defer func() { cancel() }()
	t := r.meter.tally()
	defer t.flush()
	for c = range r.calls {
		r.ready.Add(-1)
		r.grow(base)
		msgs := make([]queue.Message, c.count) // the publisher may keep it
		for i := range msgs {
			msgs[i] = r.Message(c.first + uint64(i))
		}
		sent := ledger.Now()
		if ctx == nil || sent >= renew {
			cancel()
			limited, stop := context.WithTimeout(base, r.Timeout)
			cancel = stop
			ctx, renew = ledger.WithDue(limited, due), sent+int64(r.Timeout/timeoutParts)
		}
		err := r.Publisher.Publish(ctx, msgs...)
		<-r.slots
		t.record(sent, sent-c.due, len(msgs), err)
		r.ready.Add(1)
	}
}

// timeoutParts is into how many parts a time-out is divided: how much too early
// it may come.
const timeoutParts = 64

const neverDue = int64(1<<63 - 1)
