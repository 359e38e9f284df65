// Package stat draws what can be concluded from a few trials, and no more.
//
// Its functions are pure. Intervals are at 95 %, tests are two-sided and exact
// for the numbers of trials that a benchmark has, and the bootstrap is seeded, so
// that a result read twice says the same. Values must be finite numbers.
package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// MinTrials is the least number of trials whose median can be bounded at 95 %:
// the chance that all of n lie on one side of it is 2/2^n.
const MinTrials = 6

// NoisyBeyond is the share of the median by which an end of its interval may
// differ before Noisy says that the row must not be ranked.
const NoisyBeyond = 0.25

const resamples = 10_000

// Median is the middle value, or the mean of the two middle ones; 0 for none.
func Median(xs []float64) float64 { return middle(slices.Sorted(slices.Values(xs))) }

func middle(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return sorted[(n-1)/2]/2 + sorted[n/2]/2
}

// MedianInterval is the bootstrap interval of the median at 95 %, by the
// percentiles of 10,000 seeded resamples. Fewer than MinTrials values cannot
// bound a median: it is then the least and the greatest. For none it is 0, 0.
func MedianInterval(xs []float64, seed uint64) (low, high float64) {
	switch {
	case len(xs) == 0:
		return 0, 0
	case len(xs) < MinTrials:
		return slices.Min(xs), slices.Max(xs)
	}
	return ends(medians(xs, rand.NewPCG(seed, 1)))
}

// medians are those of the resamples.
func medians(xs []float64, source *rand.PCG) []float64 {
	sorted := slices.Sorted(slices.Values(xs))
	n := len(sorted)
	count := make([]int32, n)
	out := make([]float64, resamples)
	for i := range out {
		clear(count)
		for drawn := 0; drawn < n; drawn += 2 {
			// Two draws of 32 bits: they prefer some of n values by n in four billion.
			r := source.Uint64()
			count[r>>32*uint64(n)>>32]++
			if drawn+1 < n {
				count[r&math.MaxUint32*uint64(n)>>32]++
			}
		}
		// Counting ranks finds the middle without sorting each resample.
		below, next := (n-1)/2, 0
		for below -= int(count[0]); below >= 0; below -= int(count[next]) {
			next++
		}
		out[i] = sorted[next]
		if n%2 == 0 && below == -1 { // the middle's second half is the next value drawn
			for next++; count[next] == 0; {
				next++
			}
			out[i] = out[i]/2 + sorted[next]/2
		}
	}
	return out
}

// ends are the 2.5th and the 97.5th percentile.
func ends(estimates []float64) (low, high float64) {
	slices.Sort(estimates)
	n := float64(len(estimates))
	return estimates[int(math.Floor(0.025*n))], estimates[int(math.Ceil(0.975*n))-1]
}

// Variation is the coefficient of variation: the standard deviation as a share
// of the mean. It is 0 for fewer than two values or a mean of 0.
func Variation(xs []float64) float64 {
	if len(xs) < 2 {
		return 0
	}
	var sum, squares float64
	for _, x := range xs {
		sum += x
	}
	mean := sum / float64(len(xs))
	for _, x := range xs {
		squares += (x - mean) * (x - mean)
	}
	if mean == 0 {
		return 0
	}
	return math.Sqrt(squares/float64(len(xs)-1)) / math.Abs(mean)
}

// Noisy says why trials with these values are too few or too far apart to be
// ranked by their median; "" when they are not. The rule: at least MinTrials,
// and both ends of the median's interval within NoisyBeyond of it.
func Noisy(xs []float64) string {
	if len(xs) < MinTrials {
		trials := "trials"
		if len(xs) == 1 {
			trials = "trial"
		}
		return fmt.Sprintf("%d %s: fewer than %d cannot bound a median at 95 %%", len(xs), trials, MinTrials)
	}
	low, high := MedianInterval(xs, 1)
	return NoisyInterval(Median(xs), low, high)
}

// NoisyInterval is Noisy for a median of enough trials whose interval is at hand.
func NoisyInterval(m, low, high float64) string {
	if math.Max(m-low, high-m) <= NoisyBeyond*math.Abs(m) {
		return ""
	}
	if m == 0 {
		return fmt.Sprintf("the median is 0 and its 95 %% interval %.3g to %.3g", low, high)
	}
	return fmt.Sprintf("the 95 %% interval of the median reaches from %+.0f %% to %+.0f %% of it: beyond %.0f %%",
		100*(low-m)/math.Abs(m), 100*(high-m)/math.Abs(m), 100*NoisyBeyond)
}
