package redistest

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// Rate is one way to do something, and how often it did so, in messages per
// second.
type Rate func() (float64, error)

// Timed is the rate of do, which handles n messages.
func Timed(n int, do func() error) (float64, error) {
	start := time.Now()
	err := do()
	return float64(n) / time.Since(start).Seconds(), err
}

// Pairs measures two ways to do the same in turn, one pair for each operation
// of the benchmark, so that both see the same machine: run it with
// -benchtime=7x. The metrics are the medians of the two rates and of the ratio,
// ours to theirs.
func Pairs(b *testing.B, ours, theirs Rate) {
	b.Helper()
	var own, other, ratio []float64
	for i := range b.N {
		var o, t float64
		var err error
		if i%2 == 0 {
			o, err = ours()
		}
		if err == nil {
			t, err = theirs()
		}
		if err == nil && i%2 == 1 {
			o, err = ours()
		}
		if err != nil {
			b.Fatal(err)
		}
		own, other, ratio = append(own, o), append(other, t), append(ratio, o/t)
	}
	b.ReportMetric(median(own), "ours/s")
	b.ReportMetric(median(other), "theirs/s")
	b.ReportMetric(median(ratio), "ratio")
	b.ReportMetric(0, "ns/op") // of a pair: it says nothing
}

func median(v []float64) float64 {
	slices.Sort(v)
	return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
}

// Callers runs so many at a time, and returns the first error.
func Callers(n int, do func(caller int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
