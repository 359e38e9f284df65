// Package lie tells one recorded run the way in which published tools have told
// theirs, beside the truth.
package lie

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"queuelab/bench/ledger"
)

// Told is what one reporter says of the run, in milliseconds. What it does not
// tell is NaN.
type Told struct {
	Name    string // of the mistake; "the truth" for the one without
	How     string // what it does
	Met     string // where such numbers were published
	Mean    float64
	P50     float64
	P90     float64
	P99     float64
	P999    float64
	Max     float64
	Samples int
}

// Reporters tells the run by every reporter, the true one first. Messages that
// were never delivered are in nobody's percentiles.
func Reporters(stamps []ledger.Stamp) []Told {
	var due, sent []float64 // ms, from the due time and from the send
	var coarse []float64    // ms, by a clock of one second
	for _, s := range stamps {
		if s.Delivered == ledger.NoStamp || s.Sent == ledger.NoStamp {
			continue
		}
		due = append(due, ms(s.Delivered-s.Due))
		sent = append(sent, ms(s.Delivered-s.Sent))
		const second = int64(time.Second)
		coarse = append(coarse, ms(s.Delivered-floor(s.Sent, second)))
	}
	nothing := math.NaN()
	mean := tell(due)
	mean.P50, mean.P90, mean.P99, mean.P999, mean.Max = nothing, nothing, nothing, nothing, nothing
	reservoir := sample(due, 1028)
	return []Told{
		name(tell(due), "the truth", "every message, from the time it was due to the time it was delivered", ""),
		name(mean, "the mean only", "one number, in which a stall of a second is a shrug", "mq-benchmarking"),
		name(buckets(due, 0, 50, 100, 150, 200, 500, 1000, 2000, 5000, 60_000), "coarse buckets", "counts in buckets of 0, 50, 100 ms …, and draws a line inside each", "mqperf: whatever takes less than 50 ms is reported as 47.5"),
		name(reservoir, "a reservoir", "1,028 samples stand for all, also for the maximum", "RabbitMQ PerfTest"),
		name(tell(sent), "from the send", "counts from when the message was sent, so that a sender that was held up forgives the queue", "kafka-producer-perf-test, nats bench, PerfTest"),
		name(tell(coarse), "one-second timestamps", "the message carries its time of sending in whole seconds", "OpenMessaging Benchmark's RabbitMQ driver"),
	}
}

func ms(ns int64) float64 { return float64(ns) / 1e6 }

func floor(ns, unit int64) int64 {
	r := ns % unit
	if r < 0 {
		r += unit
	}
	return ns - r
}

func name(t Told, what, how, met string) Told {
	t.Name, t.How, t.Met = what, how, met
	return t
}

// tell takes the percentiles of all values.
func tell(values []float64) Told {
	t := Told{Samples: len(values)}
	if len(values) == 0 {
		t.Mean, t.P50, t.P90, t.P99, t.P999, t.Max = math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()
		return t
	}
	sorted := slices.Sorted(slices.Values(values))
	for _, v := range sorted {
		t.Mean += v / float64(len(sorted))
	}
	at := func(q float64) float64 { return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)] }
	t.P50, t.P90, t.P99, t.P999, t.Max = at(0.5), at(0.9), at(0.99), at(0.999), sorted[len(sorted)-1]
	return t
}

// buckets counts values between bounds and interpolates linearly inside the
// bucket that a percentile falls into.
func buckets(values []float64, bounds ...float64) Told {
	counts := make([]int, len(bounds))
	for _, v := range values {
		i, _ := slices.BinarySearch(bounds, v)
		counts[min(i, len(bounds)-1)]++
	}
	at := func(q float64) float64 {
		rank, below := q*float64(len(values)), 0.0
		for i, n := range counts {
			if n > 0 && below+float64(n) >= rank {
				low := 0.0
				if i > 0 {
					low = bounds[i-1]
				}
				return low + (bounds[i]-low)*(rank-below)/float64(n)
			}
			below += float64(n)
		}
		return math.NaN()
	}
	t := tell(values)
	t.Mean, t.P50, t.P90, t.P99, t.P999, t.Max = math.NaN(), at(0.5), at(0.9), at(0.99), at(0.999), math.NaN()
	return t
}

// sample keeps n values by a decaying reservoir: the later a value comes, the
// likelier it stays.
func sample(values []float64, n int) Told {
	type weighed struct{ priority, value float64 }
	rng := rand.New(rand.NewPCG(1028, 15))
	kept := make([]weighed, 0, len(values))
	for i, v := range values {
		// By the age in the run, in place of seconds: e^(alpha t) over u.
		weight := math.Exp(0.015 * 300 * float64(i) / float64(len(values)))
		kept = append(kept, weighed{weight / (1 - rng.Float64()), v})
	}
	slices.SortFunc(kept, func(a, b weighed) int {
		switch {
		case a.priority > b.priority:
			return -1
		case a.priority < b.priority:
			return 1
		}
		return 0
	})
	if len(kept) > n {
		kept = kept[:n]
	}
	var out []float64
	for _, k := range kept {
		out = append(out, k.value)
	}
	return tell(out)
}
