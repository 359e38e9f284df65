package host

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

func cpuModel() string {
	s, _ := unix.Sysctl("machdep.cpu.brand_string")
	return s
}

func memoryBytes() int64 {
	n, _ := unix.SysctlUint64("hw.memsize")
	return int64(n)
}

// load1 reads struct loadavg: three fixed-point numbers, and after the padding
// the scale that they are to be divided by.
func load1() float64 {
	raw, err := unix.SysctlRaw("vm.loadavg")
	if err != nil || len(raw) < 24 {
		return 0
	}
	scale := binary.LittleEndian.Uint64(raw[16:])
	if scale == 0 {
		return 0
	}
	return float64(binary.LittleEndian.Uint32(raw)) / float64(scale)
}

// clockSource is the only one that there is.
func clockSource() string { return "mach_absolute_time" }

func governor() (name, driver string) { return "", "" }

// swapUsed reads struct xsw_usage: what there is, what is free, what is used.
func swapUsed() int64 {
	raw, err := unix.SysctlRaw("vm.swapusage")
	if err != nil || len(raw) < 24 {
		return -1
	}
	return int64(binary.LittleEndian.Uint64(raw[16:]))
}
