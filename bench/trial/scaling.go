package trial

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
)

// scaleValues are the values of a scaling test's dimension.
func scaleValues(test string) []int {
	switch test {
	case TestScalingConsumers:
		return []int{1, 2, 4, 8, 16}
	case TestScalingConnections:
		return []int{1, 2, 4, 8}
	case TestScalingPayload:
		return []int{100, 1_000, 10_000, 100_000}
	case TestScalingBatch:
		return []int{1, 8, 64, 512}
	}
	return nil
}

const manyKeys = "uniform:1024"

// inWindow bounds the bytes of the messages that are published and not yet
// delivered: the window of small ones would be gigabytes of large ones.
const inWindow = 64 << 20

// scale measures the throughput at every value of one dimension, in an order
// that the seed draws.
func (l *Lab) scale(ctx context.Context, s Spec, seed uint64) (*measured, error) {
	values := scaleValues(s.Test)
	rng := rand.New(rand.NewPCG(seed, 2))
	rng.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	all, some := &measured{}, false
	var failed error
	for _, v := range values {
		spec := s
		spec.Test = TestThroughput
		switch s.Test {
		case TestScalingConsumers:
			// As many keys as hardly leave a consumer without a share.
			spec.Load.Consumers, spec.Load.Keys = v, manyKeys
			if s.Setting.Backend == "kafka" { // no more consumers than partitions get a share
				spec.Setting.Query += fmt.Sprintf("&partitions=%d", slices.Max(values))
			}
		case TestScalingConnections:
			spec.Load.Connections, spec.Load.Producers = v, v
		case TestScalingPayload:
			spec.Load.Payload = v
			spec.Load.Window = min(spec.Load.Window, max(int64(inWindow/v), int64(4*spec.Load.Batch)))
		case TestScalingBatch:
			spec.Load.Batch = v
		}
		m, err := l.throughput(ctx, spec)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		at := scaleAt{Value: v}
		switch {
		case err != nil:
			at.Reason, failed = err.Error(), err
		case len(m.invalid) > 0:
			at.Reason = m.invalid[0]
		default:
			at.Rate = m.rate
		}
		if err == nil {
			all.caps, all.settings, some = m.caps, m.settings, true
			addCounts(&all.report.Counts, m.report.Counts)
			all.rate = max(all.rate, at.Rate)
		}
		all.scale = append(all.scale, at)
	}
	if !some {
		return nil, failed
	}
	return all, nil
}

// scaling gathers the trials' rates by value.
func (t *tally) scaling(test string, seed uint64) []ScalePoint {
	var points []ScalePoint
	for _, v := range scaleValues(test) {
		p := ScalePoint{Value: v, Rates: []float64{}, Trials: []int{}}
		for _, o := range t.each {
			for _, at := range o.Rates {
				switch {
				case at.Value != v:
				case at.Reason != "":
					p.Reason = at.Reason
				default:
					p.Rates, p.Trials = append(p.Rates, at.Rate), append(p.Trials, o.Run.N)
				}
			}
		}
		if len(p.Rates) > 0 {
			p.Rate, p.Reason = intervalOf(p.Rates, seed), ""
		}
		points = append(points, p)
	}
	return points
}
