package queue

import (
	"sync"
	"time"
)

// backlog is what a worker has received and no lane has begun, in the order in
// which it came. A lane takes from the front whatever has no key that another
// lane has in hand: so batches are as full as they can be, and what lies together
// in the queue is mostly settled together, which is cheap in most queues.
type backlog struct {
	batch  int
	linger time.Duration
	more   chan struct{} // signalled when a lane that found nothing may look again

	mu      sync.Mutex
	waiting []*Delivery
	since   time.Time       // since when the first of those waits for a lane to begin
	hands   map[string]hand // the keys that lanes have in hand
	busy    int             // lanes

	lingering bool // a lane looks again by itself, so that it need not be woken for every message
}

// hand says whose a key is, and how many deliveries the lane has of it.
type hand struct{ lane, n int }

func newBacklog(batch int, linger time.Duration) *backlog {
	return &backlog{batch: batch, linger: linger, more: make(chan struct{}, 1), hands: make(map[string]hand)}
}

func (b *backlog) add(ds []*Delivery) {
	if len(ds) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.since = time.Now()
	}
	b.waiting = append(b.waiting, ds...)
	if !b.lingering || len(b.waiting) >= b.batch {
		b.wake()
	}
}

// take gives an idle lane its next batch, or nil: then it looks again when
// signalled, and after wait where that is not 0.
func (b *backlog) take(lane int) (batch []*Delivery, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lingering = false
	if len(b.waiting) == 0 {
		return nil, 0
	}
	if b.busy > 0 && len(b.waiting) < b.batch {
		if wait = b.linger - time.Since(b.since); wait > 0 {
			b.lingering = true
			return nil, wait
		}
	}
	batch = make([]*Delivery, 0, min(b.batch, len(b.waiting)))
	var passed []*Delivery // over: their keys are in other hands
	at := 0
	for ; at < len(b.waiting) && len(batch) < b.batch; at++ {
		d := b.waiting[at]
		b.waiting[at] = nil
		if d.Key != "" {
			h := b.hands[d.Key]
			if h.n > 0 && h.lane != lane {
				passed = append(passed, d)
				continue
			}
			b.hands[d.Key] = hand{lane, h.n + 1}
		}
		batch = append(batch, d)
	}
	b.waiting = b.waiting[at-len(passed):]
	copy(b.waiting, passed)
	if len(batch) == 0 {
		return nil, 0 // until a key is given up
	}
	b.busy++
	b.since = time.Now()
	if len(b.waiting) > 0 {
		b.wake()
	}
	return batch, 0
}

// giveUp says that a lane is done with those of a batch that are not kept, which
// are in the batch's order.
func (b *backlog) giveUp(batch, kept []*Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(kept) == 0 {
		b.busy--
	}
	for _, d := range batch {
		if len(kept) > 0 && kept[0] == d {
			kept = kept[1:]
			continue
		}
		if d.Key == "" {
			continue
		}
		if h := b.hands[d.Key]; h.n > 1 {
			b.hands[d.Key] = hand{h.lane, h.n - 1}
		} else {
			delete(b.hands, d.Key)
		}
	}
	if len(b.waiting) > 0 {
		b.wake()
	}
}

func (b *backlog) wake() {
	select {
	case b.more <- struct{}{}:
	default:
	}
}
