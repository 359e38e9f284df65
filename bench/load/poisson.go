package load

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// gapBlock is how many gaps are drawn at once: enough that finding a block
// costs little per message.
const gapBlock = 1 << 10

// poisson is a plan of independent buyers: the gaps between messages are
// exponential.
//
// To know when message n is due without n draws, time is divided from the top:
// over 2^64 gaps, whose sum is as good as certain, the sum of the first half is
// a share drawn from its beta distribution, and so on down to the block that
// holds n. In a block, the gaps are exponentials scaled to the block's length.
// That is the distribution of as many independent gaps, not a likeness of it.
// Each draw has a generator of its own, seeded by its place in the tree, so
// that no order of calls matters.
type poisson struct {
	rate   float64
	seed   uint64
	recent [4]atomic.Pointer[gaps] // blocks by number mod 4: a cache, never more
}

// gaps is one block: when its messages are due, in mean gaps from the start.
type gaps struct {
	number uint64
	due    [gapBlock]float64
}

// Poisson returns a plan of exponential gaps; the first message is due after
// the first gap. A call for a message near the last one costs nanoseconds, any
// other some microseconds. With a rate that is not positive no message is ever
// due.
func Poisson(perSecond float64, seed uint64) Pacer { return &poisson{rate: perSecond, seed: seed} }

// Due implements Pacer.
func (p *poisson) Due(n uint64) time.Duration {
	if !(p.rate > 0) {
		return math.MaxInt64
	}
	slot := &p.recent[n/gapBlock%uint64(len(p.recent))]
	b := slot.Load()
	if b == nil || b.number != n/gapBlock {
		b = p.block(n / gapBlock)
		slot.Store(b)
	}
	if ns := b.due[n%gapBlock] / p.rate * 1e9; ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}

func (p *poisson) String() string { return "poisson:" + formatRate(p.rate) }

func (p *poisson) block(number uint64) *gaps {
	source := &rand.PCG{}
	r := rand.New(source)
	begin, end := 0.0, float64(1<<63)*2
	first, half := uint64(0), uint64(1<<63)/gapBlock // of the blocks: the first of this part, and half of them
	for level := uint64(1); half > 0; level++ {
		source.Seed(mix(p.seed^mix(level)), mix(first))
		middle := begin + (end-begin)*halfShare(r, float64(half)*gapBlock)
		middle = min(max(middle, begin), end)
		if number >= first+half {
			begin, first = middle, first+half
		} else {
			end = middle
		}
		half /= 2
	}
	source.Seed(mix(p.seed), mix(number))
	b := &gaps{number: number}
	sum := 0.0
	for i := range b.due {
		sum += r.ExpFloat64()
		b.due[i] = sum
	}
	scale := (end - begin) / sum
	for i := range b.due {
		b.due[i] = min(begin+b.due[i]*scale, end)
	}
	return b
}

// halfShare draws the share of the first n of 2n exponential gaps in their sum.
func halfShare(r *rand.Rand, n float64) float64 {
	a, b := gamma(r, n), gamma(r, n)
	return a / (a + b)
}

// gamma draws the sum of n exponentials, n >= 1 (Marsaglia and Tsang, 2000).
func gamma(r *rand.Rand, n float64) float64 {
	d := n - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if u := 1 - r.Float64(); math.Log(u) < 0.5*x*x+d*(1-v+math.Log(v)) {
			return d * v
		}
	}
}

// mix spreads the bits of x (SplitMix64), so that neighbours have nothing in
// common.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
