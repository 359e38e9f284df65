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
	kib, _ := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	return kib * 1024
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
