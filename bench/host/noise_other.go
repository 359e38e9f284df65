//go:build !linux

package host

import "time"

func precise() {}

// sleep is Go's, whose own lateness is then part of the noise.
func sleep(d time.Duration) { time.Sleep(d) }
