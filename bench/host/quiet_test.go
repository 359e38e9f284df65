package host

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/host/meter"
	"queuelab/bench/trial"
)

func TestFactsTellWhatDisturbs(t *testing.T) {
	began := time.Now()
	h := Facts(t.Context(), t.TempDir())
	if n := h.NoiseMicros; n == nil || n.P50 < 0 || n.P99 < n.P50 || n.Max < n.P99 {
		t.Errorf("got noise %+v, want p50 <= p99 <= max", h.NoiseMicros)
	} else if spent := time.Since(began).Microseconds(); n.Max > spent {
		t.Errorf("got %d µs late at most in %d µs", n.Max, spent)
	}
	if (runtime.GOOS == "linux" || runtime.GOOS == "darwin") && h.ClockSource == "" {
		t.Error("got no clock source")
	}
	if _, known := meter.CPUPressure(); known != (h.CPUPressure != nil) {
		t.Errorf("got pressure %+v, want it where it is known: %v", h.CPUPressure, known)
	}
	if p := h.CPUPressure; p != nil && (p.Before < 0 || p.Before > 100 || p.During != 0) {
		t.Errorf("got pressure %+v, want a share before, and none during what has not begun", p)
	}
}

func TestNoiseIsNilWhereNoTimeIsLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := noise(ctx); got != nil {
		t.Errorf("got %+v, want nil", got)
	}
}

func TestWatchedAddsWhatTheRunSaw(t *testing.T) {
	share := 12.5
	before := trial.Host{Cores: 2, CPUPressure: &trial.Pressure{Before: 3}}
	for name, c := range map[string]struct {
		host trial.Host
		saw  meter.Reading
		want trial.Host
	}{
		"all of it": {
			before, meter.Reading{CPUPressure: &share, StealPercent: 1.5, SwappedPages: 7, ClockJump: -1500 * time.Millisecond},
			trial.Host{Cores: 2, CPUPressure: &trial.Pressure{Before: 3, During: 12.5}, StealPercent: 1.5, SwappedPages: 7, ClockJumpMillis: -1500},
		},
		"no pressure is known":           {trial.Host{Cores: 2}, meter.Reading{}, trial.Host{Cores: 2}},
		"pressure is known by the run":   {trial.Host{}, meter.Reading{CPUPressure: &share}, trial.Host{CPUPressure: &trial.Pressure{During: 12.5}}},
		"a second watch replaces a jump": {trial.Host{ClockJumpMillis: 9}, meter.Reading{}, trial.Host{}},
	} {
		if diff := cmp.Diff(c.want, Watched(c.host, c.saw)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if before.CPUPressure.During != 0 {
		t.Errorf("got %+v, want the host that was given unchanged", before.CPUPressure)
	}
}

func TestDoctorWarnsOfWhatDisturbs(t *testing.T) {
	quiet := trial.Host{ClockSource: "tsc", CPUPressure: &trial.Pressure{Before: 10}, NoiseMicros: &trial.Noise{P50: 50, P99: 1000, Max: 90_000}}
	with := func(change func(*trial.Host)) trial.Host {
		h := quiet
		change(&h)
		return h
	}
	for _, c := range []struct {
		name    string
		host    trial.Host
		swapped int64
		check   string
		state   string
		found   string
	}{
		{"tsc is fast", quiet, 0, "clock", OK, "tsc"},
		{"kvm-clock is fast", with(func(h *trial.Host) { h.ClockSource = "kvm-clock" }), 0, "clock", OK, "kvm-clock"},
		{"arm's timer is fast", with(func(h *trial.Host) { h.ClockSource = "arch_sys_counter" }), 0, "clock", OK, "arch_sys_counter"},
		{"hpet is slow", with(func(h *trial.Host) { h.ClockSource = "hpet" }), 0, "clock", Poor, "hpet: slow"},
		{"acpi_pm is slow", with(func(h *trial.Host) { h.ClockSource = "acpi_pm" }), 0, "clock", Poor, "acpi_pm: slow"},
		{"a clock that nobody names", with(func(h *trial.Host) { h.ClockSource = "" }), 0, "clock", Note, "unknown"},
		{"some pressure is borne", quiet, 0, "CPU pressure", OK, "10.0 %"},
		{"much pressure is not", with(func(h *trial.Host) { h.CPUPressure = &trial.Pressure{Before: 10.1} }), 0, "CPU pressure", Poor, "10.1 %"},
		{"no pressure is counted", with(func(h *trial.Host) { h.CPUPressure = nil }), 0, "CPU pressure", Note, "unknown"},
		{"no swap", quiet, 0, "swap", OK, "none"},
		{"swap in use", quiet, 3 << 20, "swap", Poor, "3 MiB in use"},
		{"swap that cannot be seen", quiet, -1, "swap", Note, "unknown"},
		{"a late wake now and then is borne", quiet, 0, "noise", OK, "p99 1000 µs"},
		{"one in a hundred is not", with(func(h *trial.Host) { h.NoiseMicros = &trial.Noise{P99: 1001, Max: 1001} }), 0, "noise", Poor, "p99 1001 µs"},
		{"noise that was not measured", with(func(h *trial.Host) { h.NoiseMicros = nil }), 0, "noise", Note, "unknown"},
	} {
		got := find(t, Report{Checks: quietChecks(c.host, c.swapped)}, c.check)
		if got.State != c.state || !strings.Contains(got.Found, c.found) || got.For == "" {
			t.Errorf("%s: got %s, %q, want %s with %q", c.name, got.State, got.Found, c.state, c.found)
		}
	}
	for _, c := range []struct{ name, driver, state, found string }{
		{"performance", "acpi-cpufreq", OK, "performance (acpi-cpufreq)"},
		{"schedutil", "", OK, "schedutil"},
		{"powersave", "intel_pstate", Poor, "powersave (intel_pstate): "},
		{"", "", Note, "none"},
	} {
		if got := governorCheck(c.name, c.driver); got.State != c.state || !strings.HasPrefix(got.Found, c.found) {
			t.Errorf("governor %q: got %s, %q, want %s, %q", c.name, got.State, got.Found, c.state, c.found)
		}
	}
}
