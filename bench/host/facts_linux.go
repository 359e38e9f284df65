package host

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
)

func cpuModel() string {
	return field("/proc/cpuinfo", "model name")
}

func memoryBytes() int64 {
	n, _ := kib(field("/proc/meminfo", "MemTotal"))
	return n
}

func load1() float64 {
	data, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(data), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}

// field is the value of the first line "name : value" of a file in /proc.
func field(path, name string) string {
	data, _ := os.ReadFile(path)
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		key, value, ok := strings.Cut(s.Text(), ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func clockSource() string {
	return content("/sys/devices/system/clocksource/clocksource0/current_clocksource")
}

// governor is how the first core's frequency is chosen, and by which driver; ""
// where nothing in this system chooses it, as in most virtual machines.
func governor() (name, driver string) {
	const dir = "/sys/devices/system/cpu/cpu0/cpufreq/"
	return content(dir + "scaling_governor"), content(dir + "scaling_driver")
}

// swapUsed is how much of memory is in swap, in bytes, or -1.
func swapUsed() int64 {
	total, err1 := kib(field("/proc/meminfo", "SwapTotal"))
	free, err2 := kib(field("/proc/meminfo", "SwapFree"))
	if err1 != nil || err2 != nil {
		return -1
	}
	return total - free
}

// kib turns "1234 kB" into bytes.
func kib(s string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSuffix(s, " kB"), 10, 64)
	return n * 1024, err
}

// content is a small file's, without the line's end; "" if there is none.
func content(path string) string {
	b, _ := os.ReadFile(path)
	return strings.TrimSpace(string(b))
}
