package load

import (
	"math"
	"math/rand/v2"
	"sort"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPoissonGapsAreExponential(t *testing.T) {
	const rate, n = 1000, 200_000
	// From the start, and from far out, where the blocks come from other draws.
	for _, first := range []uint64{0, 1 << 40} {
		p := Poisson(rate, 42)
		gaps := make([]float64, n)
		last := time.Duration(0)
		if first > 0 {
			last = p.Due(first - 1)
		}
		for i := range gaps {
			due := p.Due(first + uint64(i))
			gaps[i] = (due - last).Seconds() * rate
			last = due
		}
		var sum, squares, neighbours float64
		for i, g := range gaps {
			sum += g
			squares += (g - 1) * (g - 1)
			if i > 0 {
				neighbours += (g - 1) * (gaps[i-1] - 1)
			}
		}
		// Of an exponential: mean 1, variance 1, no correlation; the bounds are
		// five standard errors.
		if mean := sum / n; math.Abs(mean-1) > 5/math.Sqrt(n) {
			t.Errorf("from %d: got a mean gap of %v, want 1", first, mean)
		}
		if variance := squares / n; math.Abs(variance-1) > 5*math.Sqrt(8.0/n) {
			t.Errorf("from %d: got a variance of %v, want 1", first, variance)
		}
		if c := neighbours / n; math.Abs(c) > 5/math.Sqrt(n) {
			t.Errorf("from %d: got a correlation of %v between neighbours, want 0", first, c)
		}
		// Kolmogorov and Smirnov: at 0.1 % the distance is 1.95/√n.
		sort.Float64s(gaps)
		worst := 0.0
		for i, g := range gaps {
			worst = max(worst, math.Abs(1-math.Exp(-g)-float64(i)/n))
		}
		if worst > 1.95/math.Sqrt(n) {
			t.Errorf("from %d: got a distance of %v from the exponential, want less than %v", first, worst, 1.95/math.Sqrt(n))
		}
	}
}

// Counts over stretches much longer than a block vary as a Poisson's do: the
// division of time from the top neither loses nor adds any of it.
func TestPoissonCountsVaryAsTheyShould(t *testing.T) {
	const stretch, stretches = 5000, 1000 // messages in a stretch on average
	p := Poisson(1000, 7)
	var sum, squares float64
	last := uint64(0)
	for i := range stretches {
		n := CountBefore(p, time.Duration(i+1)*5*time.Second)
		c := float64(n - last)
		last = n
		sum += c
		squares += (c - stretch) * (c - stretch)
	}
	if mean := sum / stretches; math.Abs(mean-stretch) > 5*math.Sqrt(stretch/float64(stretches)) {
		t.Errorf("got %v messages in a stretch, want %d", mean, stretch)
	}
	if ratio := squares / stretches / stretch; math.Abs(ratio-1) > 5*math.Sqrt(2.0/stretches) {
		t.Errorf("got a variance of %v of the mean, want 1", ratio)
	}
}

func TestPoissonHasItsRateInTheLongRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		n := rapid.Uint64Range(1000, 1<<50).Draw(t, "n")
		p := Poisson(1e6, seed)
		got := p.Due(n).Seconds() * 1e6 / float64(n)
		if math.Abs(got-1) > 6/math.Sqrt(float64(n)) {
			t.Errorf("seed %d: message %d is due at %v of the mean", seed, n, got)
		}
	})
}

func TestPoissonIsTheSameInAnyOrderAndByManyAtOnce(t *testing.T) {
	const n = 20_000
	want := make([]time.Duration, n)
	inOrder := Poisson(5000, 3)
	for i := range want {
		want[i] = inOrder.Due(uint64(i))
	}
	shared := Poisson(5000, 3)
	var readers sync.WaitGroup
	for reader := range uint64(4) {
		readers.Go(func() {
			r := rand.New(rand.NewPCG(1, reader))
			for range 2000 {
				i := r.IntN(n)
				if got := shared.Due(uint64(i)); got != want[i] {
					t.Errorf("message %d: got %v, want %v", i, got, want[i])
					return
				}
			}
		})
	}
	readers.Wait()
	differ := 0
	other := Poisson(5000, 4)
	for i := range want {
		if other.Due(uint64(i)) != want[i] {
			differ++
		}
	}
	if differ < n*99/100 {
		t.Errorf("another seed: got only %d of %d messages elsewhere", differ, n)
	}
}

// A run is replayed from its seed, also by a later version of this program.
func TestPoissonStaysWhatItIs(t *testing.T) {
	p := Poisson(1000, 1)
	for n, want := range map[uint64]time.Duration{0: 152_588, 1023: 1_063_948_451, 1024: 1_064_300_542, 1_000_000: 999_088_676_827} {
		if got := p.Due(n); got != want {
			t.Errorf("message %d: got %d, want %d", n, got, want)
		}
	}
}

func TestPoissonWithoutARateIsNeverDue(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN(), 1e-300} {
		if got := Poisson(rate, 1).Due(5); got != math.MaxInt64 {
			t.Errorf("rate %v: got %v, want never", rate, got)
		}
	}
}
