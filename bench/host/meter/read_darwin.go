package meter

import (
	"time"

	"golang.org/x/sys/unix"
)

func self() Usage {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return Usage{}
	}
	return Usage{CPU: time.Duration(r.Utime.Nano() + r.Stime.Nano()), PeakMemoryBytes: r.Maxrss} // bytes here
}

func readCounters() counters { return counters{} }

func readPressure() (pressure, bool) { return pressure{}, false }
