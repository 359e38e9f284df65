package load

import "golang.org/x/sys/unix"

// sleepUntil sleeps in the kernel, which wakes a thread within some 20 µs once
// its timer slack is gone. It may return early.
func sleepUntil(until int64) {
	// Without the slack set the kernel adds 50 µs; where it cannot be set that
	// shows as lateness. It stays with the thread, and does no harm there.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	ts := unix.NsecToTimespec(until)
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil)
}
