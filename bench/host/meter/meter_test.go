package meter

import (
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// burn keeps a core until this process has used that much time of it.
func burn(t *testing.T, d time.Duration) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	x := 1.0
	for from := Self().CPU; Self().CPU-from < d; {
		if time.Now().After(deadline) {
			t.Fatalf("got %v of CPU time in a minute's work, want %v", Self().CPU-from, d)
		}
		for range 100000 {
			x = math.Sqrt(x + 1)
		}
	}
	runtime.KeepAlive(x)
}

func TestSelfCountsWhatThisProcessDoes(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("this system does not tell")
	}
	before := Self()
	burn(t, 20*time.Millisecond)
	const size = 64 << 20
	block := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		block[i] = 1
	}
	after := Self()
	if took := after.CPU - before.CPU; took < 20*time.Millisecond || took > time.Minute {
		t.Errorf("got %v of CPU time, want at least the 20ms that were burnt", took)
	}
	if after.PeakMemoryBytes < size {
		t.Errorf("got a peak of %d bytes with %d written to, want at least those", after.PeakMemoryBytes, size)
	}
	runtime.KeepAlive(block)
	runtime.GC() // which frees it: nobody needs it any more
	if now := Self(); now.PeakMemoryBytes < after.PeakMemoryBytes {
		t.Errorf("got a peak of %d bytes after one of %d, want one that stays", now.PeakMemoryBytes, after.PeakMemoryBytes)
	}
}

func TestWatchSaysWhatWasBetweenStartAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := counters{pressured: true, pressure: pressure{total: time.Hour}, stolen: 100, ticks: 10_000, swapped: 7}
		w := start(func() counters { return now }, func() time.Duration { return time.Hour })
		time.Sleep(10 * time.Second)
		now = counters{pressured: true, pressure: pressure{total: time.Hour + 2500*time.Millisecond}, stolen: 130, ticks: 11_000, swapped: 19}
		share := 25.0
		want := Reading{Over: 10 * time.Second, CPUPressure: &share, StealPercent: 3, SwappedPages: 12}
		if diff := cmp.Diff(want, w.Stop()); diff != "" {
			t.Errorf("the reading (-want +got):\n%s", diff)
		}
		now.swapped = 1000
		if diff := cmp.Diff(want, w.Stop()); diff != "" {
			t.Errorf("the reading of a second Stop (-want +got):\n%s", diff)
		}
	})
}

func TestWatchMakesNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct{ before, after counters }{
			"nothing is counted":                 {},
			"counters that went back are no use": {counters{stolen: 5, ticks: 100, swapped: 9}, counters{stolen: 4, ticks: 200, swapped: 3}},
			"a count that ended while it ran":    {before: counters{pressured: true, pressure: pressure{total: time.Second}}},
		} {
			now := c.before
			w := start(func() counters { return now }, func() time.Duration { return 0 })
			time.Sleep(time.Second)
			now = c.after
			if diff := cmp.Diff(Reading{Over: time.Second}, w.Stop()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	})
}

func TestWatchSeesAClockThatIsSetAndSetBack(t *testing.T) {
	for name, c := range map[string]struct {
		moves map[int]time.Duration // offset from that second on
		want  time.Duration
	}{
		"a clock left alone":               {nil, 0},
		"set forward and left":             {map[int]time.Duration{3: 2 * time.Second}, 2 * time.Second},
		"set back and left":                {map[int]time.Duration{3: -1500 * time.Millisecond}, -1500 * time.Millisecond},
		"set forward and back":             {map[int]time.Duration{3: time.Hour, 5: 0}, time.Hour},
		"set back and further than it was": {map[int]time.Duration{3: -2 * time.Second, 5: time.Second}, -2 * time.Second},
		"what reading two clocks costs":    {map[int]time.Duration{3: 400 * time.Microsecond}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				w := start(func() counters { return counters{} }, func() time.Duration {
					offset := 42 * time.Minute // of the origin: of no concern
					at := -1
					for second, o := range c.moves {
						if second > at && time.Since(began) >= time.Duration(second)*time.Second {
							offset, at = 42*time.Minute+o, second
						}
					}
					return offset
				})
				time.Sleep(8 * time.Second)
				if got := w.Stop().ClockJump; got != c.want {
					t.Errorf("got a jump of %v, want %v", got, c.want)
				}
			})
		})
	}
}

func TestARealWatchOfThisMachine(t *testing.T) {
	w := Start()
	burn(t, 30*time.Millisecond)
	r := w.Stop()
	if r.Over <= 0 || r.StealPercent < 0 || r.StealPercent > 100 || r.SwappedPages < 0 {
		t.Errorf("got %+v, want what a machine can do", r)
	}
	if r.ClockJump.Abs() > time.Second {
		t.Errorf("got a clock jump of %v, want none: nobody set it", r.ClockJump)
	}
	if _, known := CPUPressure(); known != (r.CPUPressure != nil) {
		t.Errorf("got pressure %v over the watch, want it known where it was before: %v", r.CPUPressure, known)
	}
}
