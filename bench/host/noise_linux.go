package host

import (
	"time"

	"golang.org/x/sys/unix"
)

// precise takes away the 50 µs that the kernel allows itself beyond what a
// thread asks for, as the load's own waits do: they are no noise.
func precise() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// sleep sleeps in the kernel, not in Go's scheduler.
func sleep(d time.Duration) {
	ts := unix.NsecToTimespec(d.Nanoseconds())
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, &ts) == unix.EINTR {
	}
}
