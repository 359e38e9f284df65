//go:build !linux && !darwin

package host

import "runtime"

func cpuModel() string       { return "" }
func memoryBytes() int64     { return 0 }
func load1() float64         { return 0 }
func kernel() string         { return runtime.GOOS }
func freeBytes(string) int64 { return -1 }
func clockSource() string    { return "" }
func swapUsed() int64        { return -1 }

func governor() (name, driver string) { return "", "" }
