// Package host knows the machine: the facts that every result carries, and what
// is here of the things that measurements need.
package host

import (
	"cmp"
	"context"
	"os"
	"runtime"
	"slices"
	"time"

	"queuelab/bench/host/meter"
	"queuelab/bench/trial"
)

// Facts describes the machine; dir is where brokers will keep their data, and it
// is written to for at most two seconds to learn what an fsync costs there. Half
// a second before that goes into learning how late threads wake. It never fails:
// what cannot be learned is zero, empty or nil. What is known only once a run is
// over is added by Watched.
func Facts(ctx context.Context, dir string) trial.Host {
	return trial.Host{
		CPU:         cmp.Or(cpuModel(), runtime.GOARCH),
		Cores:       runtime.NumCPU(),
		Kernel:      kernel(),
		MemoryBytes: memoryBytes(),
		ClockSource: clockSource(),
		CPUPressure: pressure(), // before the fsyncs add to it, and to the load
		Load1:       load1(),
		NoiseMicros: noise(ctx),
		FsyncMicros: fsyncLatency(ctx, dir),
	}
}

// Watched is h with what a watch over the run saw. A watch over a part of a run
// that was resumed replaces what an earlier one saw.
func Watched(h trial.Host, r meter.Reading) trial.Host {
	if r.CPUPressure != nil {
		p := trial.Pressure{During: *r.CPUPressure}
		if h.CPUPressure != nil {
			p.Before = h.CPUPressure.Before
		}
		h.CPUPressure = &p
	}
	h.ClockJumpMillis = r.ClockJump.Milliseconds()
	h.StealPercent = r.StealPercent
	h.SwappedPages = r.SwappedPages
	return h
}

// pressure is what it was before a run; nil: the kernel does not count it.
func pressure() *trial.Pressure {
	avg10, known := meter.CPUPressure()
	if !known {
		return nil
	}
	return &trial.Pressure{Before: avg10}
}

const (
	fsyncTimes = 200
	fsyncFor   = 2 * time.Second
)

// fsyncLatency appends 4 KiB and syncs, again and again: what a log on that
// disk pays for each durable write. Zero: it could not be measured.
func fsyncLatency(ctx context.Context, dir string) trial.Fsync {
	f, err := os.CreateTemp(dir, ".fsync-*")
	if err != nil {
		return trial.Fsync{}
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 4096)
	var took []int64
	for end := time.Now().Add(fsyncFor); len(took) < fsyncTimes && time.Now().Before(end) && ctx.Err() == nil; {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			break
		}
		if err := f.Sync(); err != nil {
			break
		}
		// At least 1: zero would say that nothing was measured.
		took = append(took, max(time.Since(start).Microseconds(), 1))
	}
	if len(took) == 0 {
		return trial.Fsync{}
	}
	slices.Sort(took)
	return trial.Fsync{P50: quantile(took, 50), P99: quantile(took, 99)}
}

// quantile is the smallest value that at least that many per cent do not exceed.
func quantile(sorted []int64, percent int) int64 {
	return sorted[max((len(sorted)*percent+99)/100-1, 0)]
}
