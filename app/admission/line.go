package admission

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"queuelab/app/sale"
)

// lineMost bounds the clicks of one round trip: more would keep the server
// from everybody else, and gains nothing.
const lineMost = 128

// lineRest is the least between the beginnings of two trips: at half of what the
// door can do, each would carry one or two clicks, at half as much again for each.
const lineRest = time.Millisecond

// line gathers the clicks that come while a round trip is under way, and sends
// them as the next one. A click that comes alone waits for nobody. One trip at a time: with
// two, each would carry half as many, and cost as much. Nothing runs while there
// are none, so there is nothing to close.
type line struct {
	send func([]*asking)

	mu      sync.Mutex
	waiting []*asking
	running bool
	sent    time.Time // when the last trip began; only who runs has it
	spare   sync.Pool // of askings that nobody has any more
}

// asking is a click on its way.
type asking struct {
	click  sale.Click
	bucket bucket
	answer sale.Answer
	err    error
	done   chan struct{} // gets one value, once the rest is there
	gone   atomic.Bool   // whoever asked has left
}

// ask returns once the click is answered or ctx ended; then it may have been
// taken, if it was on its way already. What was not is never sent: after an
// outage nobody is waiting for it any more.
func (l *line) ask(ctx context.Context, c sale.Click, b bucket) (sale.Answer, error) {
	a, ok := l.spare.Get().(*asking)
	if !ok {
		a = &asking{done: make(chan struct{}, 1)}
	}
	a.click, a.bucket, a.answer, a.err = c, b, sale.Answer{}, nil
	l.mu.Lock()
	l.waiting = append(l.waiting, a)
	start := !l.running
	l.running = true
	l.mu.Unlock()
	if start {
		go l.run()
	}
	select {
	case <-a.done:
		answer, err := a.answer, a.err
		l.spare.Put(a)
		return answer, err
	case <-ctx.Done():
		a.gone.Store(true) // and not spare: it may be on its way
		return sale.Answer{}, ctx.Err()
	}
}

func (l *line) run() {
	batch := make([]*asking, 0, lineMost)
	for {
		// Whoever is about to click does so first, and shares the trip.
		runtime.Gosched()
		if rest := lineRest - time.Since(l.sent); rest > 0 {
			time.Sleep(rest)
		}
		l.mu.Lock()
		batch = l.next(batch[:0])
		if len(batch) == 0 {
			l.running = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		l.sent = time.Now()
		l.send(batch)
		for _, a := range batch {
			a.done <- struct{}{} // it is not ours any more
		}
		clear(batch)
	}
}

// next moves those at the head of the line into a batch.
func (l *line) next(batch []*asking) []*asking {
	n := 0
	for ; n < len(l.waiting) && len(batch) < lineMost; n++ {
		if a := l.waiting[n]; !a.gone.Load() {
			batch = append(batch, a)
		}
	}
	l.waiting = slices.Delete(l.waiting, 0, n)
	return batch
}
