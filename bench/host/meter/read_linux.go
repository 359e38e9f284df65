package meter

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func self() Usage {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return Usage{}
	}
	u := Usage{CPU: time.Duration(r.Utime.Nano() + r.Stime.Nano())}
	// Not ru_maxrss: a process inherits that from the one that started it.
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if kib, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(kib), " kB"), 10, 64)
			u.PeakMemoryBytes = n * 1024
		}
	}
	return u
}

func readCounters() counters {
	var c counters
	c.pressure, c.pressured = readPressure()
	stat, _ := os.ReadFile("/proc/stat")
	c.stolen, c.ticks = parseStat(string(stat))
	vmstat, _ := os.ReadFile("/proc/vmstat")
	c.swapped = parseVMStat(string(vmstat))
	return c
}

func readPressure() (pressure, bool) {
	// There may be a file that cannot be read: the kernel knows how, and was
	// booted without.
	b, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return pressure{}, false
	}
	return parsePressure(string(b))
}

// parsePressure reads "some avg10=2.49 avg60=2.00 avg300=5.49 total=5430714857",
// the total in microseconds.
func parsePressure(file string) (p pressure, ok bool) {
	for line := range strings.Lines(file) {
		f := strings.Fields(line)
		if len(f) != 5 || f[0] != "some" {
			continue
		}
		avg, err1 := strconv.ParseFloat(strings.TrimPrefix(f[1], "avg10="), 64)
		total, err2 := strconv.ParseInt(strings.TrimPrefix(f[4], "total="), 10, 64)
		return pressure{avg, time.Duration(total) * time.Microsecond}, err1 == nil && err2 == nil
	}
	return pressure{}, false
}

// parseStat reads "cpu user nice system idle iowait irq softirq steal guest …",
// of which a guest's time is in its user's already.
func parseStat(file string) (stolen, all uint64) {
	first, _, _ := strings.Cut(file, "\n")
	f := strings.Fields(first)
	if len(f) < 9 || f[0] != "cpu" {
		return 0, 0
	}
	for i, s := range f[1:9] {
		n, _ := strconv.ParseUint(s, 10, 64)
		all += n
		if i == 7 {
			stolen = n
		}
	}
	return stolen, all
}

func parseVMStat(file string) (swapped int64) {
	for line := range strings.Lines(file) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "pswpin" || name == "pswpout" {
			n, _ := strconv.ParseInt(value, 10, 64)
			swapped += n
		}
	}
	return swapped
}
