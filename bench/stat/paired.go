package stat

import (
	"cmp"
	"math"
	"slices"
)

// PairedApart is the median of b[i]-a[i] and that of b[i]/a[i], each with its
// bootstrap interval. What changes over the hours falls on both of a pair, and so
// on neither's account. The ratios are averaged by their logarithms, so that
// swapping a and b gives the reciprocal. Fewer than MinTrials pairs give the least
// and the greatest. There is a ratio only where all values are above 0, and
// nothing where the numbers differ or are 0.
func PairedApart(a, b []float64, seed uint64) (diff, ratio Estimate, hasRatio bool) {
	if len(a) != len(b) || len(a) == 0 {
		return diff, ratio, false
	}
	ds := make([]float64, len(a))
	for i := range a {
		ds[i] = b[i] - a[i]
	}
	diff.Value = Median(ds)
	diff.Low, diff.High = MedianInterval(ds, seed)
	if !positive(a) || !positive(b) {
		return diff, ratio, false
	}
	for i := range a {
		ds[i] = math.Log(b[i] / a[i])
	}
	low, high := MedianInterval(ds, seed)
	return diff, Estimate{math.Exp(Median(ds)), math.Exp(low), math.Exp(high)}, true
}

// signedRankExact is the most pairs whose distribution is counted out; it takes
// a millisecond, and beyond it the normal one is as good.
const signedRankExact = 100

// SignedRank is the two-sided p of Wilcoxon's test over pairs: of the ratios
// where all values are above 0, otherwise of the differences. Equal pairs are
// left out. It is exact up to 100 pairs with ties, and 1 where no pair differs or
// the numbers do.
func SignedRank(a, b []float64) float64 {
	if len(a) != len(b) {
		return 1
	}
	ratios := positive(a) && positive(b)
	type pair struct {
		size float64
		up   bool
	}
	var pairs []pair
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		size := math.Abs(b[i] - a[i])
		if ratios {
			size = math.Max(a[i], b[i]) / math.Min(a[i], b[i])
		}
		pairs = append(pairs, pair{size, b[i] > a[i]})
	}
	if len(pairs) == 0 {
		return 1
	}
	slices.SortFunc(pairs, func(x, y pair) int { return cmp.Compare(x.size, y.size) })
	// Ranks are doubled: ties share a mean, which may be a half.
	ranks := make([]int, len(pairs))
	ups, all := 0, 0
	for first := 0; first < len(pairs); {
		end := first + 1
		for end < len(pairs) && pairs[end].size == pairs[first].size {
			end++
		}
		for i := first; i < end; i++ {
			ranks[i] = first + end + 1 // the mean of first+1 to end, twice
			all += ranks[i]
			if pairs[i].up {
				ups += ranks[i]
			}
		}
		first = end
	}
	return signedRank(ranks, min(ups, all-ups), all)
}

// signedRank is the chance of a sum as small as this one, on either side, when
// each rank is as likely to count as not.
func signedRank(ranks []int, sum, all int) float64 {
	if len(ranks) > signedRankExact {
		var variance float64
		for _, r := range ranks {
			variance += float64(r*r) / 4
		}
		z := (float64(all)/2 - float64(sum) - 1) / math.Sqrt(variance) // 1: half of a doubled rank's step
		return math.Min(1, math.Erfc(math.Max(0, z)/math.Sqrt2))
	}
	chance := make([]float64, all+1)
	chance[0] = 1
	for _, r := range ranks {
		for s := all; s >= 0; s-- {
			chance[s] /= 2
			if s >= r {
				chance[s] += chance[s-r] / 2
			}
		}
	}
	var p float64
	for _, c := range chance[:sum+1] {
		p += c
	}
	return math.Min(1, 2*p)
}

// LeastSignedRank is the least p that SignedRank can give for n pairs: 0.06 for
// 5 of them, whatever they hold.
func LeastSignedRank(n int) float64 {
	if n <= 0 {
		return 1
	}
	return math.Ldexp(1, 1-n)
}
