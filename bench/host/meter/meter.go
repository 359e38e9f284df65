// Package meter reads what a process and its machine have used: a process asks
// about itself, and a watch says what is only known over a stretch of time. It
// knows nothing of trials, so that those who run them can use it.
package meter

import "time"

// Usage is what this process has used since it began. Its children are not in it.
type Usage struct {
	// CPU is user and system time of all threads; the kernel counts it to the
	// microsecond or better, and two of them may be subtracted.
	CPU time.Duration
	// PeakMemoryBytes is the most that was resident at any moment, with the
	// pages of mapped files that were in memory, as those of a ledger. 0: this
	// system does not tell.
	PeakMemoryBytes int64
}

// Self reads what this process has used so far. It takes some 30 µs, and never
// fails: what cannot be learned is zero.
func Self() Usage { return self() }

// CPUPressure is the share of the last ten seconds, in per cent, in which
// something runnable on this machine waited for a core. It is not known where
// the kernel does not count it: only Linux does, from 4.20 on, unless it was
// built or booted without. No estimate is made up from the load average, which
// counts waiting for disks too.
func CPUPressure() (avg10 float64, known bool) {
	p, known := readPressure()
	return p.avg10, known
}

// pressure is the kernel's count of it.
type pressure struct {
	avg10 float64
	total time.Duration // since the machine started
}

// counters are those of the machine. Those that the system does not keep are
// zero at every reading, and so is what is drawn from them.
type counters struct {
	pressure  pressure
	pressured bool // pressure is known
	stolen    uint64
	ticks     uint64 // of all cores, stolen ones included
	swapped   int64  // pages, in and out
}
