package meter

import (
	"sync"
	"time"
)

// Reading is what a watch saw.
type Reading struct {
	Over time.Duration
	// CPUPressure is the share of that time, in per cent, in which something
	// runnable waited for a core; nil where the kernel does not count it. What
	// is measured waits too: it tells how full the machine was, not who filled it.
	CPUPressure *float64
	// StealPercent is the share of the cores' time in which a virtual machine
	// had something to run and its host ran something else.
	StealPercent float64
	// SwappedPages were read from swap or written to it, by whomever.
	SwappedPages int64
	// ClockJump is the furthest that the wall clock was from where it would have
	// been had nobody set it: positive, it was set forward. A machine that was
	// suspended jumps forward too, where its monotonic clock stood still. A
	// clock that is only slowed or sped up, as NTP does, does not jump.
	ClockJump time.Duration
}

// Watch looks at the machine until it is stopped. It costs two readings of /proc
// and one look at the clock a second.
type Watch struct {
	began    time.Time
	before   counters
	read     func() counters
	offset   func() time.Duration // of the wall clock against the monotonic one, from any origin
	origin   time.Duration
	furthest time.Duration // written by look until done is closed

	stop func() Reading
	end  chan struct{}
	done chan struct{}
}

// Start begins a watch; Stop must be called.
func Start() *Watch { return start(readCounters, wallAgainst(time.Now())) }

func start(read func() counters, offset func() time.Duration) *Watch {
	w := &Watch{
		began: time.Now(), before: read(), read: read, offset: offset,
		end: make(chan struct{}), done: make(chan struct{}),
	}
	w.origin = offset()
	w.stop = sync.OnceValue(w.finish)
	go w.look()
	return w
}

// Stop ends the watch and says what it saw. A second Stop says the same.
func (w *Watch) Stop() Reading { return w.stop() }

// look catches what jumps there and back between start and end.
func (w *Watch) look() {
	defer close(w.done)
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-w.end:
			w.see()
			return
		case <-t.C:
			w.see()
		}
	}
}

func (w *Watch) see() {
	if jump := w.offset() - w.origin; jump.Abs() > w.furthest.Abs() {
		w.furthest = jump
	}
}

func (w *Watch) finish() Reading {
	close(w.end)
	<-w.done
	over, now := time.Since(w.began), w.read()
	r := Reading{Over: over, ClockJump: w.furthest.Round(time.Millisecond), SwappedPages: max(0, now.swapped-w.before.swapped)}
	if w.before.pressured && now.pressured && over > 0 {
		share := 100 * float64(now.pressure.total-w.before.pressure.total) / float64(over)
		share = min(max(share, 0), 100) // two files are not read at one moment
		r.CPUPressure = &share
	}
	// The kernel has been seen to count steal backwards.
	if now.ticks > w.before.ticks && now.stolen > w.before.stolen {
		r.StealPercent = 100 * float64(now.stolen-w.before.stolen) / float64(now.ticks-w.before.ticks)
	}
	return r
}

// wallAgainst returns a reading of by how much the wall clock went further since
// then than the monotonic one.
func wallAgainst(then time.Time) func() time.Duration {
	return func() time.Duration {
		// The two clocks are read one after the other, and a thread may be
		// stopped in between: the nearest of some readings is the true one, or
		// all of them show a jump.
		nearest := time.Duration(1<<63 - 1)
		for range 5 {
			now := time.Now()
			// Round takes the monotonic reading away.
			d := now.Round(0).Sub(then.Round(0)) - now.Sub(then)
			if d.Abs() < nearest.Abs() {
				nearest = d
			}
		}
		return nearest
	}
}
