package stat

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// MannWhitney is the two-sided p of the test that neither sample tends to be
// greater. It is exact up to 50 values a side, 25 where some are equal, and 1
// where all are equal or a side has none.
func MannWhitney(a, b []float64) float64 {
	// Each tail is asked for by itself: with ties and sides of unequal size the
	// distribution is not symmetric, and twice one tail would be that of the other.
	less, err := stats.MannWhitneyUTest(a, b, stats.LocationLess)
	if err != nil {
		return 1
	}
	greater, err := stats.MannWhitneyUTest(b, a, stats.LocationLess)
	if err != nil {
		return 1
	}
	return math.Min(1, 2*math.Min(less.P, greater.P))
}

// LeastMannWhitney is the least p that MannWhitney can give for samples of these
// sizes: 0.1 for 3 and 3, whatever they hold.
func LeastMannWhitney(na, nb int) float64 {
	if na <= 0 || nb <= 0 {
		return 1
	}
	return math.Min(1, 2*math.Exp(-lchoose(na+nb, na)))
}

// Greater is the chance that a value of b is greater than one of a, ties counted
// half: 0.5 is no difference, 0 and 1 are no overlap. It is 0.5 where a side has
// none.
func Greater(a, b []float64) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 0.5
	}
	var n float64
	for _, x := range a {
		for _, y := range b {
			switch {
			case y > x:
				n++
			case y == x:
				n += 0.5
			}
		}
	}
	return n / float64(len(a)*len(b))
}

// Estimate is a value with its interval at 95 %.
type Estimate struct{ Value, Low, High float64 }

// Apart is Median(b) - Median(a) and Median(b) / Median(a), each with its
// bootstrap interval. Where a side has fewer than MinTrials, the intervals span
// the greatest differences between single values. There is a ratio only where all
// values are above 0, and nothing where a side has none.
func Apart(a, b []float64, seed uint64) (diff, ratio Estimate, hasRatio bool) {
	if len(a) == 0 || len(b) == 0 {
		return diff, ratio, false
	}
	hasRatio = positive(a) && positive(b)
	diff.Value = Median(b) - Median(a)
	if hasRatio {
		ratio.Value = Median(b) / Median(a)
	}
	if min(len(a), len(b)) < MinTrials {
		diff.Low, diff.High = slices.Min(b)-slices.Max(a), slices.Max(b)-slices.Min(a)
		if hasRatio {
			ratio.Low, ratio.High = slices.Min(b)/slices.Max(a), slices.Max(b)/slices.Min(a)
		}
		return diff, ratio, hasRatio
	}
	source := rand.NewPCG(seed, 2)
	as, bs := medians(a, source), medians(b, source) // each side by itself
	each := func(f func(a, b float64) float64) (low, high float64) {
		out := make([]float64, len(as))
		for i := range as {
			out[i] = f(as[i], bs[i])
		}
		return ends(out)
	}
	diff.Low, diff.High = each(func(a, b float64) float64 { return b - a })
	if hasRatio {
		ratio.Low, ratio.High = each(func(a, b float64) float64 { return b / a })
	}
	return diff, ratio, hasRatio
}

func positive(xs []float64) bool {
	return len(xs) > 0 && slices.Min(xs) > 0
}
