package ledger

import (
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// All five records of a message, through the recorders and no queue.
func BenchmarkMessage(b *testing.B) {
	for _, parallel := range []bool{false, true} {
		name := "one goroutine"
		if parallel {
			name = "8 goroutines"
		}
		b.Run(name, func(b *testing.B) {
			w := must(Create(filepath.Join(b.TempDir(), "a"), 1))(b)
			defer w.Close()
			b.ReportAllocs()
			cpu := cpuTime()
			if parallel {
				b.SetParallelism(max(1, 8/runtime.GOMAXPROCS(0)))
				b.RunParallel(func(pb *testing.PB) {
					m := newNullMessage(w)
					for pb.Next() {
						if err := m.pass(b.Context()); err != nil {
							b.Error(err)
							return
						}
					}
				})
			} else {
				m := newNullMessage(w)
				for b.Loop() {
					if err := m.pass(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			}
			// On a busy machine the wall clock says more of the others than of us.
			b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
		})
	}
}

// written returns a ledger of messages to which nothing unusual happened.
func written(b *testing.B, messages int) string {
	path := filepath.Join(b.TempDir(), "a")
	w := must(Create(path, 1))(b)
	at := int64(1_000_000)
	for i := range messages {
		for k, e := range []Event{Intent, Accepted, Delivered, Effect, Acked} {
			w.Append(Record{Event: e, Trial: 1, Producer: 1, Seq: uint64(i), At: at + int64(k)*2000, Due: at - 10})
		}
		at += 2500
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}

// The account of half a million messages, in two ways: with all records in
// memory, and one by one.
func BenchmarkAccount(b *testing.B) {
	const messages = 500_000
	path := written(b, messages)
	for _, c := range []struct {
		name string
		run  func() (Report, any)
	}{
		{"all at once", func() (Report, any) {
			rs := must(Read(path))(b)
			in := Input{Records: rs, Effects: EffectsOf(rs)}
			return Account(in), in
		}},
		{"one by one", func() (Report, any) {
			t := NewTally(Input{CountEffects: true})
			for r, err := range Scan(path) {
				if err != nil {
					b.Fatal(err)
				}
				t.Add(r)
			}
			return t.Report(), t
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			before := m.HeapAlloc
			cpu := cpuTime()
			var held any
			for b.Loop() {
				var r Report
				if r, held = c.run(); r.Accepted != messages {
					b.Fatalf("got %+v", r.Counts)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(5*messages), "ns/record")
			b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N)/(5*messages), "cpu-ns/record")
			runtime.GC()
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapAlloc-before)/messages, "heldB/message")
			runtime.KeepAlive(held)
		})
	}
}

func BenchmarkScan(b *testing.B) {
	const messages = 200_000
	path := written(b, messages)
	for b.Loop() {
		for _, err := range Scan(path) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(5*messages), "ns/record")
}

// cpuTime is the processor time of this process, in ns.
func cpuTime() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
