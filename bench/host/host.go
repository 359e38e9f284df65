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

	"queuelab/bench/trial"
)

// Facts describes the machine; dir is where brokers will keep their data, and it
// is written to for at most two seconds to learn what an fsync costs there. It
// never fails: what cannot be learned is zero or empty.
func Facts(ctx context.Context, dir string) trial.Host {
	return trial.Host{
		CPU:         cmp.Or(cpuModel(), runtime.GOARCH),
		Cores:       runtime.NumCPU(),
		Kernel:      kernel(),
		MemoryBytes: memoryBytes(),
		Load1:       load1(), // before the fsyncs add to it
		FsyncMicros: fsyncLatency(ctx, dir),
	}
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
