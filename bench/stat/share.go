package stat

import (
	"math"

	"github.com/aclements/go-moremath/mathx"
)

// ClopperPearson is the exact interval, at 95 %, of the chance behind k of n. It
// is 0, 1 for an n of 0, which tells nothing.
func ClopperPearson(k, n int) (low, high float64) {
	low, high = 0, 1
	if k > 0 {
		low = betaQuantile(0.025, float64(k), float64(n-k+1))
	}
	if k < n {
		high = betaQuantile(0.975, float64(k+1), float64(n-k))
	}
	return low, high
}

// betaQuantile inverts the distribution's function by bisection, which has no
// case in which it does not converge.
func betaQuantile(p, a, b float64) float64 {
	low, high := 0.0, 1.0
	for range 200 {
		mid := low + (high-low)/2
		if mathx.BetaInc(mid, a, b) < p {
			low = mid
		} else {
			high = mid
		}
	}
	return low + (high-low)/2
}

// NoneExcludes is the chance above which, at 95 % and one-sided, none in n would
// not have been seen: about 3/n. It is 1 for an n of 0.
func NoneExcludes(n int) float64 {
	if n <= 0 {
		return 1
	}
	return -math.Expm1(math.Log(0.05) / float64(n))
}

// Fisher is the two-sided p of Fisher's exact test that ka of na and kb of nb
// have the same chance.
func Fisher(ka, na, kb, nb int) float64 {
	k := ka + kb
	if na <= 0 || nb <= 0 || k == 0 || k == na+nb {
		return 1
	}
	chance := func(a int) float64 {
		return math.Exp(lchoose(na, a) + lchoose(nb, k-a) - lchoose(na+nb, k))
	}
	seen, p := chance(ka), 0.0
	for a := max(0, k-nb); a <= min(na, k); a++ {
		if c := chance(a); c <= seen*(1+1e-7) { // equal ones differ by rounding
			p += c
		}
	}
	return math.Min(1, p)
}

// LeastFisher is the least p that Fisher can give for these numbers of trials.
func LeastFisher(na, nb int) float64 { return Fisher(0, na, nb, nb) }

func lchoose(n, k int) float64 {
	lgamma := func(i int) float64 { v, _ := math.Lgamma(float64(i + 1)); return v }
	return lgamma(n) - lgamma(k) - lgamma(n-k)
}
