package load

import (
	"context"
	"errors"
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
)

// Loop is a closed loop: each sender waits for its answer before it sends again.
// It finds how much a queue takes. Its latencies say little, since a queue that
// stalls is not sent to meanwhile.
type Loop struct {
	Publisher queue.Publisher
	Message   func(n uint64) queue.Message
	Senders   int           // default 1
	Batch     int           // messages of one Publish call; default 1
	For       time.Duration // how long; 0: until ctx ends
	Timeout   time.Duration // for the last answers, after For; default 10 s
}

// Closed sends until the time is up or ctx ends, and returns once every Publish
// call has its answer. The error is that of a Loop that cannot run; failed
// publishes are in Stats.
func Closed(ctx context.Context, l Loop) (Stats, error) {
	if l.Publisher == nil || l.Message == nil {
		return Stats{}, errors.New("load: a loop needs a publisher and messages")
	}
	l.Senders, l.Batch = max(1, l.Senders), max(1, l.Batch)
	if l.Timeout <= 0 {
		l.Timeout = defaultTimeout
	}
	if l.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.For)
		defer cancel()
	}
	// The calls end Timeout after the schedule does, however it ends.
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

	m := newMeter()
	var next atomic.Uint64
	var senders sync.WaitGroup
	for range l.Senders {
		senders.Go(func() { l.send(ctx, calls, m, &next) })
	}
	senders.Wait()
	end := ledger.Now()
	s := m.stats()
	s.Model = "closed"
	if s.Accepted > 0 {
		s.Achieved = float64(s.Accepted) / time.Duration(end-s.First).Seconds()
	}
	return s, nil
}

func (l *Loop) send(ctx, calls context.Context, m *meter, next *atomic.Uint64) {
	for ctx.Err() == nil {
		first := next.Add(uint64(l.Batch)) - uint64(l.Batch)
		msgs := make([]queue.Message, l.Batch)
		for i := range msgs {
			msgs[i] = l.Message(first + uint64(i))
		}
		sent := ledger.Now()
		err := l.Publisher.Publish(calls, msgs...)
		m.record(sent, 0, len(msgs), err)
		if err != nil {
			select {
			case <-time.After(errorPause):
			case <-ctx.Done():
			}
		}
	}
}
