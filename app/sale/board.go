package sale

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"queuelab/app/loop"
)

const (
	// boardEvery is how often the gate is asked about what is watched.
	boardEvery = 200 * time.Millisecond
	// boardRest is the least between two looks, however many ask for one.
	boardRest = 20 * time.Millisecond
	// stockEvery is how often those who watch are told of mere numbers. That all is
	// sold, or not any more, and that the sale opens, they are told at once.
	stockEvery = time.Second
	// keepStarts is how long a start is remembered of which the database does not
	// tell: the look at it may have come just before.
	keepStarts = time.Minute
)

// Scene is what one sees of a sale that runs.
type Scene struct {
	Voucher ID
	Left    int64
	Known   bool      // false: the gate cannot tell how many are left
	Opened  time.Time // when the start signal was given; zero: not yet, or the sale opens by the clock
}

// Board shows those who watch a sale how it goes. However many they are, the gate
// is asked once for all.
type Board struct {
	gate  Gate
	nudge chan struct{}

	mu     sync.Mutex
	scenes map[ID]*scene // those that are watched
	starts map[ID]time.Time
}

type scene struct {
	Scene
	version  int // 0: nothing is known yet
	told     time.Time
	watchers map[*Watch]struct{}
}

// NewBoard makes a Board; Run keeps it up to date.
func NewBoard(gate Gate) *Board {
	return &Board{gate: gate, nudge: make(chan struct{}, 1), scenes: map[ID]*scene{}, starts: map[ID]time.Time{}}
}

// Watch is somebody's view of some sales, until Close.
type Watch struct {
	// C has something whenever Changed has.
	C <-chan struct{}

	board *Board
	wake  chan struct{}
	seen  map[ID]int
}

// Watch begins to watch sales.
func (b *Board) Watch(vouchers ...ID) *Watch {
	w := &Watch{board: b, wake: make(chan struct{}, 1), seen: map[ID]int{}}
	w.C = w.wake
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range vouchers {
		s := b.scenes[id]
		if s == nil {
			s = &scene{Scene: Scene{Voucher: id, Opened: b.starts[id]}, watchers: map[*Watch]struct{}{}}
			b.scenes[id] = s
		}
		s.watchers[w] = struct{}{}
		w.seen[id] = 0
	}
	w.wake <- struct{}{}
	b.lookSoon()
	return w
}

// Changed returns the sales that look different since the last call, and at the
// first call all of which something is known.
func (w *Watch) Changed() []Scene {
	w.board.mu.Lock()
	defer w.board.mu.Unlock()
	var changed []Scene
	for id, version := range w.seen {
		if s := w.board.scenes[id]; s != nil && s.version != version {
			w.seen[id] = s.version
			changed = append(changed, s.Scene)
		}
	}
	slices.SortFunc(changed, func(a, b Scene) int { return cmp.Compare(a.Voucher, b.Voucher) })
	return changed
}

// Close ends the watch.
func (w *Watch) Close() {
	w.board.mu.Lock()
	defer w.board.mu.Unlock()
	for id := range w.seen {
		if s := w.board.scenes[id]; s != nil {
			delete(s.watchers, w)
			if len(s.watchers) == 0 {
				delete(w.board.scenes, id)
			}
		}
	}
	clear(w.seen)
}

// change is called with the lock held.
func (s *scene) change(now time.Time) {
	s.version++
	s.told = now
	for w := range s.watchers {
		select {
		case w.wake <- struct{}{}:
		default: // it is awake already
		}
	}
}

func (b *Board) lookSoon() {
	select {
	case b.nudge <- struct{}{}:
	default:
	}
}

// SoldOut says that a click has just been told so: who watches is told as well,
// once the gate has said it again.
func (b *Board) SoldOut(voucher ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.scenes[voucher]; s != nil && s.Left != 0 {
		b.lookSoon()
	}
}

// opened tells of starts.
func (b *Board) opened(starts ...Signal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, sig := range starts {
		if !b.starts[sig.Voucher].IsZero() {
			continue
		}
		b.starts[sig.Voucher] = sig.Opened
		if s := b.scenes[sig.Voucher]; s != nil {
			s.Opened = sig.Opened
			s.change(now)
		}
	}
}

// Opens is Voucher.Opens for somebody whose view of the voucher may be older than
// its start signal.
func (b *Board) Opens(v Voucher) time.Time {
	if !v.Signal || !v.Opened.IsZero() {
		return v.Opens()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	v.Opened = b.starts[v.ID]
	return v.Opens()
}

// leave gives vouchers the gate's number of units left, where it is known.
func (b *Board) leave(vs []Voucher) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range vs {
		if s := b.scenes[vs[i].ID]; s != nil && s.Known {
			vs[i].Left = s.Left
		}
	}
}

// keep forgets all starts but these and the latest ones.
func (b *Board) keep(starts []Signal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := make(map[ID]bool, len(starts))
	for _, sig := range starts {
		known[sig.Voucher] = true
	}
	for id, at := range b.starts {
		if !known[id] && time.Since(at) > keepStarts {
			delete(b.starts, id)
		}
	}
}

// Run asks the gate about what is watched until ctx ends.
func (b *Board) Run(ctx context.Context) {
	// Nobody is told of a gate that does not answer: the clicks are.
	loop.Loop{Look: b.look, Every: boardEvery, Rest: boardRest, Wake: b.nudge, Within: stepTimeout}.Run(ctx)
}

// look asks the gate. One that does not answer leaves the board as it is.
func (b *Board) look(ctx context.Context) (time.Duration, error) {
	b.mu.Lock()
	ids := make([]ID, 0, len(b.scenes))
	for id := range b.scenes {
		ids = append(ids, id)
	}
	b.mu.Unlock()
	for _, id := range ids {
		left, known, err := b.gate.Left(ctx, id)
		if err != nil {
			return 0, err
		}
		b.show(id, left, known)
	}
	return 0, nil
}

func (b *Board) show(id ID, left int64, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.scenes[id]
	if s == nil {
		return
	}
	now := time.Now()
	turned := known != s.Known || (left == 0) != (s.Left == 0) || s.version == 0
	if turned || left != s.Left && now.Sub(s.told) >= stockEvery {
		s.Left, s.Known = left, known
		s.change(now)
	}
}
