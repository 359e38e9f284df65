package load

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"queuelab/bench/ledger"
	"queuelab/queue"
)

const (
	defaultTimeout = 10 * time.Second
	// errorPause keeps a sender from turning into a busy loop against a queue
	// that is full or gone.
	errorPause = 10 * time.Millisecond
	// windowPoll is how often a sender looks whether the window has moved.
	windowPoll = 100 * time.Microsecond
	// windowPatience is how long nothing is delivered before what is missing
	// from the window is given up: a queue that loses messages would shut it.
	windowPatience = time.Second
)

// ClosedLoop has each sender wait for its answer before it sends again. It
// finds how much a queue takes. Its latencies say little, since a queue that
// stalls is not sent to meanwhile.
type ClosedLoop struct {
	Publisher queue.Publisher
	Message   func(n uint64) queue.Message
	Senders   int           // default 1
	Batch     int           // messages of one Publish call; default 1
	Count     uint64        // at most so many messages; 0: any number
	Duration  time.Duration // how long; 0: until ctx ends
	Timeout   time.Duration // for the last answers, after Duration; default 10 s
	// Window is the most messages published and, as Delivered counts, not yet
	// delivered, so that the rate is one that consumers keep up with; a batch
	// that has begun is sent whole. 0: no bound.
	Window    int64
	Delivered func() int64
}

// Closed sends until Count messages are sent, the time is up or ctx ends, and
// returns once every Publish call has its answer. The error is that of a loop
// that cannot run; failed publishes are in Stats.
func Closed(ctx context.Context, l ClosedLoop) (Stats, error) {
	if l.Publisher == nil || l.Message == nil || l.Window > 0 && l.Delivered == nil {
		return Stats{}, errors.New("load: a closed loop needs a publisher and messages, and with a window a count of deliveries")
	}
	l.Senders, l.Batch = max(1, l.Senders), max(1, l.Batch)
	if l.Count == 0 {
		l.Count = math.MaxInt64
	}
	if l.Timeout <= 0 {
		l.Timeout = defaultTimeout
	}
	if l.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.Duration)
		defer cancel()
	}
	// Calls end Timeout after the schedule does, however it ends.
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(l.Timeout)
		defer t.Stop()
		select {
		case <-t.C:
			cancel()
		case <-calls.Done():
		}
	})
	defer stop()

	run := &closedRun{ClosedLoop: l, meter: newMeter(), calls: calls}
	var senders sync.WaitGroup
	for range l.Senders {
		senders.Go(func() { run.send(ctx) })
	}
	senders.Wait()
	end := ledger.Now()
	s := run.meter.stats()
	s.Model = "closed"
	if s.Accepted > 0 {
		s.Achieved = float64(s.Accepted) / time.Duration(end-s.First).Seconds()
	}
	return s, nil
}

type closedRun struct {
	ClosedLoop
	meter *meter
	calls context.Context

	next    atomic.Uint64
	pending atomic.Int64 // handed over and not refused
	givenUp atomic.Int64 // of pending: no longer expected to be delivered
}

func (r *closedRun) send(ctx context.Context) {
	t := r.meter.tally()
	defer t.flush()
	for r.awaitWindow(ctx) {
		first := r.next.Add(uint64(r.Batch)) - uint64(r.Batch)
		if first >= r.Count {
			return
		}
		msgs := make([]queue.Message, min(uint64(r.Batch), r.Count-first))
		for i := range msgs {
			msgs[i] = r.Message(first + uint64(i))
		}
		r.pending.Add(int64(len(msgs)))
		sent := ledger.Now()
		err := r.Publisher.Publish(r.calls, msgs...)
		accepted := t.record(sent, 0, len(msgs), err)
		if err == nil {
			continue
		}
		r.pending.Add(accepted - int64(len(msgs)))
		pause(ctx, errorPause)
	}
}

// awaitWindow waits for room in the window, and returns false once ctx ended.
func (r *closedRun) awaitWindow(ctx context.Context) bool {
	if r.Window <= 0 {
		return ctx.Err() == nil
	}
	last, moved := int64(-1), time.Now()
	for ctx.Err() == nil {
		delivered := r.Delivered()
		missing := r.pending.Load() - r.givenUp.Load() - delivered
		if missing < r.Window {
			return true
		}
		if delivered != last {
			last, moved = delivered, time.Now()
		} else if time.Since(moved) > windowPatience {
			r.givenUp.Store(r.pending.Load() - delivered)
		}
		pause(ctx, windowPoll)
	}
	return false
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
