package load

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"queuelab/bench/ledger"
	"queuelab/queue"
)

// BenchmarkGenerator reports how well a plan is held against a publisher that
// answers at once: the lateness, the rate, and the CPU time of one message.
// Run it with -benchtime=100000x or so: a message is an iteration.
func BenchmarkGenerator(b *testing.B) {
	for _, rate := range []float64{1000, 10_000, 50_000, 100_000, 200_000, 500_000} {
		b.Run(fmt.Sprintf("%.0f", rate), func(b *testing.B) {
			p := fake(func(context.Context, []queue.Message) error { return nil })
			benchmarkGenerator(b, Generator{Pacer: Constant(rate), Publisher: p, Message: Source{Size: 100}.Messages(), MaxInFlight: 4096})
		})
	}
}

// BenchmarkGeneratorInFlight is the same against answers that take 5 ms.
func BenchmarkGeneratorInFlight(b *testing.B) {
	for _, rate := range []float64{10_000, 50_000} {
		b.Run(fmt.Sprintf("%.0f", rate), func(b *testing.B) {
			p := fake(func(context.Context, []queue.Message) error { time.Sleep(5 * time.Millisecond); return nil })
			benchmarkGenerator(b, Generator{Pacer: Constant(rate), Publisher: p, Message: Source{Size: 100}.Messages(), MaxInFlight: 4096})
		})
	}
}

// BenchmarkGeneratorRecorded has each message in a ledger.
func BenchmarkGeneratorRecorded(b *testing.B) {
	for _, rate := range []float64{50_000, 100_000} {
		b.Run(fmt.Sprintf("%.0f", rate), func(b *testing.B) {
			w, err := ledger.Create(filepath.Join(b.TempDir(), "ledger"), 1)
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			p := ledger.RecordPublisher(fake(func(context.Context, []queue.Message) error { return nil }), w)
			benchmarkGenerator(b, Generator{Pacer: Constant(rate), Publisher: p, Message: Source{Size: 100}.Messages(), MaxInFlight: 4096})
		})
	}
}

// BenchmarkWall is the wall of a flash sale, 5,000 buyers within 200 ms: run it
// with -benchtime=5000x.
func BenchmarkWall(b *testing.B) {
	for _, answer := range []time.Duration{0, 20 * time.Millisecond} {
		b.Run(answer.String(), func(b *testing.B) {
			p := fake(func(context.Context, []queue.Message) error {
				if answer > 0 {
					time.Sleep(answer)
				}
				return nil
			})
			shape := mustParse(b, "spike:silence=100ms,wall=5000/200ms,tail=100", 0)
			benchmarkGenerator(b, Generator{Pacer: shape, Publisher: p, Message: Source{Size: 100}.Messages(), MaxInFlight: 8192})
		})
	}
}

func benchmarkGenerator(b *testing.B, g Generator) {
	g.Count = uint64(b.N)
	b.ReportAllocs()
	before := cpu(b)
	s, err := Run(context.Background(), g)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(s.P99Lateness)/1e3, "p99-µs")
	b.ReportMetric(float64(s.MaxLateness)/1e3, "max-µs")
	b.ReportMetric(float64(s.P50Lateness)/1e3, "p50-µs")
	b.ReportMetric(100*s.Achieved/s.Offered, "%held")
}

// cpu is what this process has used.
func cpu(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
