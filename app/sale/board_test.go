package sale

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tills is a gate that knows how much is left, and nothing else.
type tills struct {
	Gate
	mu    sync.Mutex
	left  map[ID]int64
	asked int
}

func (g *tills) Left(_ context.Context, id ID) (int64, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	n, ok := g.left[id]
	return n, ok, nil
}

func (g *tills) set(id ID, left int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left[id] = left
}

func (g *tills) questions() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked
}

// running is a board over tills, inside of synctest.
func running(t *testing.T) (*Board, *tills) {
	g := &tills{left: map[ID]int64{}}
	b := NewBoard(g)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		synctest.Wait()
	})
	go b.Run(ctx)
	// In false time: the first look, which finds nobody, and the rest after it are
	// over before anybody watches.
	time.Sleep(2 * boardRest)
	return b, g
}

func wantScenes(t *testing.T, w *Watch, want ...Scene) {
	t.Helper()
	if d := cmp.Diff(want, w.Changed()); d != "" {
		t.Errorf("scenes (-want +got):\n%s", d)
	}
}

func TestThoseWhoWatchAreToldAtOnceOfWhatMatters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, g := running(t)
		g.set(1, 10)
		g.set(2, 0)
		w := b.Watch(1, 2, 3)
		defer w.Close()
		synctest.Wait()
		<-w.C
		wantScenes(t, w, Scene{Voucher: 1, Left: 10, Known: true}, Scene{Voucher: 2, Known: true}, Scene{Voucher: 3})

		// Numbers alone may wait for a second.
		g.set(1, 9)
		time.Sleep(boardEvery)
		synctest.Wait()
		wantScenes(t, w)
		time.Sleep(stockEvery)
		synctest.Wait()
		wantScenes(t, w, Scene{Voucher: 1, Left: 9, Known: true})

		// The end does not, and less so where a click was told of it.
		g.set(1, 0)
		b.SoldOut(1)
		time.Sleep(boardRest)
		synctest.Wait()
		wantScenes(t, w, Scene{Voucher: 1, Known: true})
		g.set(1, 1)
		time.Sleep(boardEvery + boardRest)
		synctest.Wait()
		wantScenes(t, w, Scene{Voucher: 1, Left: 1, Known: true})
	})
}

func TestAStartIsToldToThoseWhoWatchAndThoseWhoCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, g := running(t)
		g.set(1, 10)
		early := b.Watch(1)
		defer early.Close()
		synctest.Wait()
		early.Changed()
		at := time.Now().UTC()
		b.opened(Signal{Voucher: 1, Opened: at}, Signal{Voucher: 2, Opened: at})
		synctest.Wait()
		<-early.C
		want := Scene{Voucher: 1, Left: 10, Known: true, Opened: at}
		wantScenes(t, early, want)
		b.opened(Signal{Voucher: 1, Opened: at.Add(time.Second)}) // told twice, it is one start
		wantScenes(t, early)
		late := b.Watch(1)
		defer late.Close()
		wantScenes(t, late, want)

		if got := b.Opens(Voucher{ID: 1, Signal: true, End: at.Add(time.Hour)}); !got.Equal(at) {
			t.Errorf("got %v, want the start %v that the voucher does not know of", got, at)
		}
		time.Sleep(keepStarts + time.Second)
		b.keep([]Signal{{Voucher: 2}})
		if len(b.starts) != 1 || b.starts[2].IsZero() {
			t.Errorf("got starts %v, want that of voucher 2 alone", b.starts)
		}
	})
}

func TestWhatNobodyWatchesIsNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, g := running(t)
		ws := []*Watch{b.Watch(1), b.Watch(1), b.Watch(1)}
		time.Sleep(2 * boardRest) // whoever came during a look has had one after it
		synctest.Wait()
		before := g.questions()
		time.Sleep(10*boardEvery + boardEvery/2)
		synctest.Wait()
		if got := g.questions() - before; got != 10 {
			t.Errorf("got %d questions for three who watch, want 10", got)
		}
		for _, w := range ws {
			w.Close()
			w.Close() // a second one is nothing
		}
		before = g.questions()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := g.questions() - before; got != 0 || len(b.scenes) != 0 {
			t.Errorf("got %d questions and %d scenes for nobody, want none", got, len(b.scenes))
		}
	})
}

func TestAListSaysWhatThoseSeeWhoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, g := running(t)
		g.set(1, 7)
		w := b.Watch(1, 2)
		defer w.Close()
		synctest.Wait()
		vs := []Voucher{{ID: 1, Left: 10}, {ID: 2, Left: 10}, {ID: 3, Left: 10}}
		b.leave(vs)
		if vs[0].Left != 7 || vs[1].Left != 10 || vs[2].Left != 10 {
			t.Errorf("got %d, %d and %d left, want the gate's 7, and the database's where the gate knows nothing or nobody watches", vs[0].Left, vs[1].Left, vs[2].Left)
		}
	})
}
