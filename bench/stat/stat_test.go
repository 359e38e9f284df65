package stat

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > within {
		t.Errorf("%s: got %.10g, want %.10g", what, got, want)
	}
}

func TestMedianOfOddEvenAndNone(t *testing.T) {
	near(t, "odd", Median([]float64{9, 1, 5}), 5, 0)
	near(t, "even", Median([]float64{4, 1, 3, 2}), 2.5, 0)
	near(t, "none", Median(nil), 0, 0)
	xs := []float64{3, 1, 2}
	Median(xs)
	if xs[0] != 3 {
		t.Error("the caller's values were sorted")
	}
}

func TestFewTrialsGiveLeastAndGreatest(t *testing.T) {
	low, high := MedianInterval([]float64{5, 1, 4, 2, 3}, 7)
	near(t, "low", low, 1, 0)
	near(t, "high", high, 5, 0)
}

func TestIntervalIsTheSameForTheSameSeed(t *testing.T) {
	xs := []float64{3, 1, 4, 1, 5, 9, 2, 6}
	l1, h1 := MedianInterval(xs, 3)
	l2, h2 := MedianInterval(xs, 3)
	if l1 != l2 || h1 != h2 {
		t.Errorf("got %v..%v and %v..%v, want the same", l1, h1, l2, h2)
	}
}

// For an odd n the bootstrap median is one of the values, with chances that a
// binomial gives: the interval's ends are known.
func TestIntervalIsWhatTheBinomialGives(t *testing.T) {
	const n = 13
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = float64((i*7)%n + 1) // 1 to 13
	}
	atMost := func(k int) (p float64) { // that the median is at most the k-th value
		for j := n/2 + 1; j <= n; j++ {
			p += math.Exp(lchoose(n, j) + float64(j)*math.Log(float64(k)/n) + float64(n-j)*math.Log1p(-float64(k)/n))
		}
		return p
	}
	want := 1
	for atMost(want) < 0.025 {
		want++
	}
	low, high := MedianInterval(xs, 1)
	near(t, "low", low, float64(want), 0)
	near(t, "high", high, float64(n+1-want), 0)
}

// Known to ten digits from another program.
func TestExactBoundsOfAShare(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{
		{0, 15, 0, 0.2180193609},
		{0, 3000, 0, 0.00122887},
		{7, 1_000_000, 2.8144e-6, 1.44227e-5},
		{5, 10, 0.1870860284, 0.8129139716},
		{10, 10, 0.6915028922, 1},
		{0, 0, 0, 1},
	} {
		low, high := ClopperPearson(c.k, c.n)
		near(t, "low", low, c.low, 2e-4*c.low+1e-12)
		near(t, "high", high, c.high, 2e-4*c.high)
	}
}

func TestNoneExcludesAboutThreeInN(t *testing.T) {
	near(t, "15", NoneExcludes(15), 0.1810365, 1e-6)
	near(t, "3000", NoneExcludes(3000), 0.000998079, 1e-8)
	near(t, "none tried", NoneExcludes(0), 1, 0)
}

func TestFisherKnowsTheTeaLady(t *testing.T) {
	near(t, "3 of 4 and 1 of 4", Fisher(3, 4, 1, 4), 34.0/70, 1e-12)
	near(t, "4 of 4 and 0 of 4", Fisher(4, 4, 0, 4), 2.0/70, 1e-12)
	near(t, "1 of 10 and 11 of 14", Fisher(1, 10, 11, 14), 0.0027594562, 1e-9)
	near(t, "none of either", Fisher(0, 9, 0, 9), 1, 0)
	near(t, "least of 3 and 3", LeastFisher(3, 3), 0.1, 1e-12)
}

// permuted is the test by its definition: every way to deal the values out.
func permuted(a, b []float64) float64 {
	all := append(append([]float64{}, a...), b...)
	u := func(mask uint) (u float64) {
		for i := range all {
			for j := range all {
				if mask>>i&1 == 1 && mask>>j&1 == 0 {
					if all[i] > all[j] {
						u++
					} else if all[i] == all[j] {
						u += 0.5
					}
				}
			}
		}
		return u
	}
	seen := u(1<<len(a) - 1)
	var less, greater, n float64
	for mask := range uint(1) << len(all) {
		if bits.OnesCount(mask) != len(a) {
			continue
		}
		n++
		if v := u(mask); v <= seen {
			less++
			if v == seen {
				greater++
			}
		} else {
			greater++
		}
	}
	return math.Min(1, 2*math.Min(less, greater)/n)
}

func TestMannWhitneyIsThePermutationTest(t *testing.T) {
	near(t, "5 and 5, one overlap", MannWhitney([]float64{1, 2, 3, 4, 6}, []float64{5, 7, 8, 9, 10}), 0.015873, 1e-6)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		a, b := make([]float64, 2+rng.IntN(5)), make([]float64, 2+rng.IntN(6))
		values := 2 + rng.IntN(12) // few values: ties
		for i := range a {
			a[i] = float64(rng.IntN(values))
		}
		for i := range b {
			b[i] = float64(rng.IntN(values))
		}
		if got, want := MannWhitney(a, b), permuted(a, b); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v and %v: got %v, want %v", a, b, got, want)
		}
	}
}

func TestMannWhitneyOfEqualsAndNoneIsNoDifference(t *testing.T) {
	same := []float64{4, 4, 4, 4, 4, 4}
	near(t, "all equal", MannWhitney(same, same), 1, 0)
	near(t, "none", MannWhitney(nil, same), 1, 0)
}

func TestLeastPIsReachedAndNotPassed(t *testing.T) {
	for n, want := range map[int]float64{3: 0.1, 4: 2.0 / 70, 5: 2.0 / 252} {
		a, b := make([]float64, n), make([]float64, n)
		for i := range a {
			a[i], b[i] = float64(i), float64(100+i)
		}
		near(t, "least", LeastMannWhitney(n, n), want, 1e-9)
		near(t, "reached", MannWhitney(a, b), want, 1e-9)
		near(t, "least, paired", SignedRank(a, b), LeastSignedRank(n), 1e-12)
	}
}

func TestGreaterCountsTiesHalf(t *testing.T) {
	near(t, "apart", Greater([]float64{1, 2}, []float64{3, 4}), 1, 0)
	near(t, "half tied", Greater([]float64{1, 2}, []float64{2, 2}), 0.75, 0)
	near(t, "none", Greater(nil, []float64{2}), 0.5, 0)
}

// signed is the test by its definition: every choice of signs.
func signed(a, b []float64) float64 {
	var ranks, sizes []float64
	var ups uint
	for i := range a {
		if a[i] != b[i] {
			if b[i] > a[i] {
				ups |= 1 << len(sizes)
			}
			sizes = append(sizes, math.Max(a[i], b[i])/math.Min(a[i], b[i]))
		}
	}
	for _, x := range sizes {
		rank := 0.5
		for _, y := range sizes {
			switch {
			case y < x:
				rank++
			case y == x:
				rank += 0.5
			}
		}
		ranks = append(ranks, rank)
	}
	sum := func(mask uint) (s float64) {
		for i, r := range ranks {
			if mask>>i&1 == 1 {
				s += r
			}
		}
		return s
	}
	seen := sum(ups)
	var less, greater float64
	for mask := range uint(1) << len(ranks) {
		if s := sum(mask); s <= seen {
			less++
			if s == seen {
				greater++
			}
		} else {
			greater++
		}
	}
	return math.Min(1, 2*math.Min(less, greater)/float64(uint(1)<<len(ranks)))
}

func TestSignedRankIsTheSignFlipTest(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 60 {
		a, b := make([]float64, 1+rng.IntN(9)), make([]float64, 0, 9)
		for i := range a {
			a[i] = math.Ldexp(1, rng.IntN(4)) // powers: ratios tie exactly
			b = append(b, math.Ldexp(1, rng.IntN(4)))
		}
		if got, want := SignedRank(a, b), signed(a, b); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v and %v: got %v, want %v", a, b, got, want)
		}
	}
	near(t, "nothing differs", SignedRank([]float64{1, 2}, []float64{1, 2}), 1, 0)
	near(t, "of unequal number", SignedRank([]float64{1, 2}, []float64{1}), 1, 0)
}

func TestSignedRankOfManyJoinsTheExactOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	ranks, all, sum := []int{}, 0, 0
	for i := 1; i <= signedRankExact; i++ {
		ranks = append(ranks, 2*i)
		all += 2 * i
		if rng.Float64() < 0.4 {
			sum += 2 * i
		}
	}
	exact := signedRank(ranks, sum, all)
	// One more that hardly counts goes the other way.
	near(t, "normal", signedRank(append(ranks, 0), sum, all), exact, 0.02*exact+1e-3)
	if exact < 1e-6 || exact > 0.5 {
		t.Errorf("got an exact p of %v, which shows nothing", exact)
	}
}

func TestDistancesOfKnownSamples(t *testing.T) {
	a := []float64{100, 101, 99, 100, 102, 98, 100, 101}
	b := make([]float64, len(a))
	for i := range a {
		b[i] = 1.2 * a[i]
	}
	about := func(what string, got Estimate, want, within float64) {
		t.Helper()
		near(t, what, got.Value, want, within/2)
		if got.Low > got.Value || got.High < got.Value || got.Low < want-within || got.High > want+within {
			t.Errorf("%s: got %+v, want an interval about %v", what, got, want)
		}
	}
	diff, ratio, ok := Apart(a, b, 1)
	if !ok {
		t.Error("got no ratio")
	}
	about("difference", diff, 20, 5)
	about("ratio", ratio, 1.2, 0.05)
	diff, ratio, _ = PairedApart(a, b, 1)
	about("paired difference", diff, 20, 1)
	about("paired ratio", ratio, 1.2, 1e-9) // every pair says the same
	zero := append([]float64{0}, a[1:]...)
	if diff, _, ok := Apart(zero, b, 1); ok || diff.Value < 19 {
		t.Errorf("got %+v, ratio %v: want a difference from a sample with a 0, and no ratio", diff, ok)
	}
	if diff, _, ok := PairedApart(zero, b, 1); ok || diff.Value < 19 {
		t.Errorf("paired: got %+v, ratio %v", diff, ok)
	}
	if diff, _, ok := PairedApart(a, b[1:], 1); ok || diff != (Estimate{}) {
		t.Errorf("got %+v of pairs that are none", diff)
	}
	if diff, _, ok := Apart(nil, b, 1); ok || diff != (Estimate{}) {
		t.Errorf("got %+v of nothing", diff)
	}
	diff, ratio, _ = Apart([]float64{100, 110}, []float64{120, 130}, 1)
	if want := (Estimate{20, 10, 30}); diff != want {
		t.Errorf("two of each: got %+v, want %+v", diff, want)
	}
	if want := (Estimate{125.0 / 105, 120.0 / 110, 1.3}); ratio != want {
		t.Errorf("two of each: got %+v, want %+v", ratio, want)
	}
}

func TestIntervalsCoverTheTruthAboutAsOftenAsTheySay(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, n := range []int{6, 10} {
		const rounds = 300
		covered := 0
		for range rounds {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = math.Exp(0.3 * rng.NormFloat64()) // the median is 1
			}
			if low, high := MedianInterval(xs, rng.Uint64()); low <= 1 && 1 <= high {
				covered++
			}
		}
		t.Logf("n=%d: %d of %d", n, covered, rounds)
		// The percentile bootstrap is a little too narrow for a small n.
		if covered < rounds*88/100 {
			t.Errorf("n=%d: got the truth in %d of %d intervals, want about 95 %%", n, covered, rounds)
		}
	}
}

func TestNoisyRowsSayWhy(t *testing.T) {
	calm := []float64{100, 101, 99, 102, 98, 100, 103}
	wild := []float64{100, 20, 250, 90, 400, 60, 10}
	for name, c := range map[string]struct {
		xs   []float64
		want string
	}{
		"few":            {calm[:5], "5 trials: fewer than 6"},
		"one":            {calm[:1], "1 trial: fewer than 6"},
		"apart":          {wild, "beyond 25 %"},
		"mostly nothing": {[]float64{0, 0, 0, 0, 0, 9, 9}, "the median is 0"},
		"below nothing":  {[]float64{-100, -20, -250, -90, -400, -60, -10}, "beyond 25 %"},
	} {
		if got := Noisy(c.xs); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q in it", name, got, c.want)
		}
	}
	for _, xs := range [][]float64{calm, make([]float64, 6)} {
		if got := Noisy(xs); got != "" {
			t.Errorf("%v: got %q, want it to be calm", xs, got)
		}
	}
}

func TestVariation(t *testing.T) {
	near(t, "known", Variation([]float64{90, 110, 100}), 0.1, 1e-12)
	near(t, "one", Variation([]float64{90}), 0, 0)
	near(t, "about 0", Variation([]float64{-1, 1}), 0, 0)
}

func BenchmarkApartOfTenAndTen(b *testing.B) {
	xs := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for b.Loop() {
		Apart(xs, xs, 1)
	}
}
