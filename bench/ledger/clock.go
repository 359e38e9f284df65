package ledger

import (
	"time"

	"golang.org/x/sys/unix"
)

// origin ties Go's monotonic clock, whose absolute value time.Time hides, to
// CLOCK_MONOTONIC. It is read once, since a clock_gettime costs ten time.Sinces.
var origin = readOrigin()

type clockOrigin struct {
	goTime    time.Time
	monotonic int64
}

func readOrigin() clockOrigin {
	var best clockOrigin
	narrowest := time.Duration(1<<63 - 1)
	for range 16 { // a preemption between the two reads would shift every stamp
		var ts unix.Timespec
		before := time.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			continue
		}
		if width := time.Since(before); width < narrowest {
			narrowest = width
			best = clockOrigin{goTime: before.Add(width / 2), monotonic: ts.Nano()}
		}
	}
	if best.goTime.IsZero() {
		best.goTime = time.Now()
	}
	return best
}

// Now returns CLOCK_MONOTONIC in nanoseconds. Values of different processes of
// one boot are comparable, to within a microsecond.
func Now() int64 { return origin.monotonic + int64(time.Since(origin.goTime)) }
