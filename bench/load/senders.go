package load

import (
	"context"
	"sync"

	"queuelab/bench/ledger"
	"queuelab/queue"
)

// openRun is a Generator at work. One goroutine waits for the due times and
// hands each call to a sender. The senders are reused, and there are as many as
// calls were ever in flight at once: the one that keeps the time never waits
// for a queue, a meter or a ledger.
type openRun struct {
	Generator
	meter   *meter
	calls   chan call // to a sender that is idle
	senders sync.WaitGroup

	sent    uint64 // messages handed to senders
	stopped int64  // when the schedule ended, as of ledger.Now
}

// call is one Publish call.
type call struct {
	first, count uint64
	due          int64 // of its last message
}

func (r *openRun) run(ctx context.Context) {
	started := 0
	for r.sent < r.total() {
		c := call{first: r.sent, count: min(uint64(r.Batch), r.total()-r.sent)}
		if c.due = r.due(c.first + c.count - 1); c.due == neverDue {
			<-ctx.Done()
			break
		}
		if r.wait(ctx, c.due) != nil || !r.hand(ctx, c, &started) {
			break
		}
		r.sent += c.count
	}
	r.stopped = ledger.Now()
	close(r.calls)
	r.senders.Wait()
}

// hand gives a call to an idle sender, or to a new one where none is idle. Once
// there are MaxInFlight it waits, and returns false when ctx ended meanwhile.
func (r *openRun) hand(ctx context.Context, c call, started *int) bool {
	select {
	case r.calls <- c:
		return true
	default:
	}
	if *started < r.MaxInFlight {
		*started++
		r.senders.Go(func() { r.send(context.WithoutCancel(ctx), c) })
		return true
	}
	select {
	case r.calls <- c:
		return true
	case <-ctx.Done():
		return false
	}
}

// send publishes c, and then whatever else comes.
func (r *openRun) send(base context.Context, c call) {
	// One context with a time-out serves all calls that begin within a small
	// part of it. The due times are asked for before Publish returns, so that
	// one function does for all calls of a sender.
	due := func(i int) int64 { return r.due(c.first + uint64(i)) }
	var ctx context.Context
	var renew int64
	cancel := context.CancelFunc(func() {})
	defer func() { cancel() }()
	for more := true; more; c, more = <-r.calls {
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
		r.meter.record(sent, sent-c.due, len(msgs), err)
	}
}

// timeoutParts is into how many parts a time-out is divided: how much too early
// it may come.
const timeoutParts = 64

const neverDue = int64(1<<63 - 1)
