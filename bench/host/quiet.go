package host

import (
	"fmt"
	"slices"

	"queuelab/bench/trial"
)

const (
	muchPressure = 10   // per cent: more, and what is measured waits for others
	muchNoise    = 1000 // µs: as much as a latency that people want to see
)

// fastClocks are the clock sources that a program reads in some 20 ns without
// entering the kernel. The others, such as hpet and acpi_pm, take a microsecond
// or several, at every message and on both sides.
func fastClocks() []string {
	return []string{"tsc", "kvm-clock", "arch_sys_counter", "riscv_clocksource",
		"hyperv_clocksource_tsc_page", "mach_absolute_time"}
}

// quietChecks tell whether latencies here are those of what is measured.
func quietChecks(h trial.Host, swapped int64) []Check {
	clock := Check{Name: "clock", State: OK, Found: h.ClockSource, For: "every time stamp: one that is read without entering the kernel"}
	switch {
	case h.ClockSource == "":
		clock.State, clock.Found = Note, "unknown"
	case !slices.Contains(fastClocks(), h.ClockSource):
		clock.State, clock.Found = Poor, h.ClockSource+": slow to read, so every message pays for being timed"
	}

	pressure := Check{Name: "CPU pressure", State: OK, For: "latency, which waits for a core as others do"}
	if p := h.CPUPressure; p == nil {
		pressure.State, pressure.Found = Note, "unknown: this kernel does not count it"
	} else {
		pressure.Found = fmt.Sprintf("something waited for a core in %.1f %% of the last ten seconds", p.Before)
		if p.Before > muchPressure {
			pressure.State = Poor
		}
	}

	name, driver := governor()
	swap := Check{Name: "swap", State: OK, Found: "none in use", For: "latency: what was swapped out is read back from disk when it is needed"}
	switch {
	case swapped < 0:
		swap.State, swap.Found = Note, "unknown"
	case swapped > 0:
		swap.State, swap.Found = Poor, size(swapped)+" in use"
	}

	noise := Check{Name: "noise", State: OK, For: "latency, to which it is added"}
	if n := h.NoiseMicros; n == nil {
		noise.State, noise.Found = Note, "unknown"
	} else {
		noise.Found = fmt.Sprintf("a thread wakes late by p50 %d µs, p99 %d µs, at most %d µs", n.P50, n.P99, n.Max)
		if n.P99 > muchNoise {
			noise.State = Poor
		}
	}
	return []Check{clock, pressure, governorCheck(name, driver), swap, noise}
}

func governorCheck(name, driver string) Check {
	c := Check{Name: "governor", State: OK, Found: name, For: "repeatable rates: cores that keep their frequency"}
	if driver != "" {
		c.Found += " (" + driver + ")"
	}
	switch name {
	case "":
		c.State, c.Found = Note, "none: this system does not choose the cores' frequency"
	case "powersave":
		c.State = Poor
		c.Found += ": cores are slow until they have been busy for a while; set the governor to performance"
	}
	return c
}
