package compare

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"queuelab/bench/stat"
	"queuelab/bench/trial"
)

func TestIdenticalRunsDifferAtTheRateOfAlpha(t *testing.T) {
	const trials = 10
	soak := os.Getenv("QUEUELAB_SOAK") != ""
	// Exact tests reach alpha only as far as their steps allow: with ten and ten
	// the greatest p up to 0.05 is this.
	reached := map[bool]float64{false: 0.0433, true: 0.0488}
	for _, paired := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(20261130, 1))
		rounds, alarms := 200, 0
		if soak && !paired {
			rounds = 400
		}
		for range rounds {
			x, y := rates(draw(rng, trials, 20_000, 0.05)), rates(draw(rng, trials, 20_000, 0.05))
			a, b := sides(cellOf("aof-always", trial.TestThroughput, x...), cellOf("aof-always", trial.TestThroughput, y...))
			if paired {
				both := resultOf("ab", monday, cellOf("aof-always#A", trial.TestThroughput, x...), cellOf("aof-always#B", trial.TestThroughput, y...))
				a, b = Of("R", both).Choose("redis-streams/aof-always#A"), Of("R", both).Choose("redis-streams/aof-always#B")
			}
			c := compared(t, a, b, Options{})
			if c.Tested != 1 || c.Paired != paired {
				t.Fatalf("got %d tests, paired %v", c.Tested, c.Paired)
			}
			alarms += c.Found
		}
		low, high := stat.ClopperPearson(alarms, rounds)
		t.Logf("paired %v: %d alarms in %d: %.3f to %.3f", paired, alarms, rounds, low, high)
		if want := reached[paired]; low > DefaultAlpha || high < want || low > want {
			t.Errorf("paired %v: got %d false alarms in %d, want a share of %.4f", paired, alarms, rounds, want)
		}
	}
}

func TestOneThatIsATwentyPerCentSlowerIsFound(t *testing.T) {
	for _, paired := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(5, 5))
		const rounds = 30
		found := map[string]int{}
		for range rounds {
			x, y := latencies(draw(rng, 10, 2000, 0.05)), latencies(draw(rng, 10, 2400, 0.05))
			a, b := sides(cellOf("aof-always", trial.TestLatency, x...), cellOf("aof-always", trial.TestLatency, y...))
			if paired {
				both := resultOf("ab", monday, cellOf("aof-always#A", trial.TestLatency, x...), cellOf("aof-always#B", trial.TestLatency, y...))
				a, b = Of("R", both).Choose("redis-streams/aof-always#A"), Of("R", both).Choose("redis-streams/aof-always#B")
			}
			c := compared(t, a, b, Options{})
			for _, metric := range []string{"endToEnd.p50", "endToEnd.p99", "publish.p50", "publish.p99"} {
				r := rowOf(c, metric)
				if r.Verdict == Worse {
					found[metric]++
				}
				if r.Percent == nil || r.Percent.Value < 5 || r.Percent.Value > 40 || r.Percent.Low > r.Percent.Value || r.Percent.High < r.Percent.Value {
					t.Errorf("paired %v %s: got a difference of %+v, want about 20 %%", paired, metric, r.Percent)
				}
			}
		}
		for metric, n := range found {
			if n < rounds-1 {
				t.Errorf("paired %v: %s was found worse in %d of %d", paired, metric, n, rounds)
			}
		}
		if len(found) != 4 {
			t.Errorf("paired %v: found in %v, want four metrics", paired, found)
		}
	}
}

// abOf is a result of ab, and its two sides.
func abOf(cellsA, cellsB []trial.Cell) (a, b Side) {
	all := []trial.Cell{}
	for label, cells := range map[string][]trial.Cell{"A": cellsA, "B": cellsB} {
		for _, c := range cells {
			c.Setting += "#" + label
			all = append(all, c)
		}
	}
	both := Of("R", resultOf("ab", monday, all...))
	return both.Choose("redis-streams/s#A"), both.Choose("redis-streams/s#B")
}

func TestTestsCorrectedTogetherFindNothingWhereNothingDiffers(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	rounds := 75
	if os.Getenv("QUEUELAB_SOAK") != "" {
		rounds = 150
	}
	alone, together := 0, 0
	for range rounds {
		cells := func() []trial.Cell {
			out := []trial.Cell{}
			for _, test := range []string{trial.TestThroughput, trial.TestScalingBatch, trial.TestScalingPayload, trial.TestScalingConsumers, trial.TestScalingConnections} {
				c := cellOf("s", test, rates(draw(rng, 10, 1000, 0.1))...)
				c.LoopModel = "closed"
				out = append(out, c)
			}
			return out
		}
		a, b := abOf(cells(), cells())
		c := compared(t, a, b, Options{FDR: true})
		if c.Found > 0 {
			together++
		}
		for _, cell := range c.Cells {
			if *cell.Rows[0].P <= DefaultAlpha {
				alone++
				break
			}
		}
	}
	t.Logf("of %d runs of five tests, %d found something alone, %d together", rounds, alone, together)
	if low, _ := stat.ClopperPearson(together, rounds); low > DefaultAlpha {
		t.Errorf("got a false alarm in %d of %d runs, want 5 %%", together, rounds)
	}
	if low, _ := stat.ClopperPearson(alone, rounds); low < 0.1 {
		t.Errorf("got a false alarm in %d of %d runs without the correction: it corrects nothing", alone, rounds)
	}
}

func TestMetricsThatAreWorseTogetherAreFoundTogether(t *testing.T) {
	// Seven pairs: their least p is 0.016, and five times that is beyond alpha.
	x := []float64{1000, 1010, 1020, 1030, 1040, 1050, 1060}
	y := []float64{1200, 1212, 1224, 1236, 1248, 1260, 1272}
	a, b := abOf(
		[]trial.Cell{cellOf("s", trial.TestLatency, latencies(x)...), cellOf("s", trial.TestThroughput, rates(x)...)},
		[]trial.Cell{cellOf("s", trial.TestLatency, latencies(y)...), cellOf("s", trial.TestThroughput, rates(x)...)})
	c := compared(t, a, b, Options{FDR: true})
	for metric, want := range map[string]string{"endToEnd.p50": Worse, "endToEnd.p99": Worse, "publish.p50": Worse, "publish.p99": Worse, "ratePerSecond": Same} {
		r := rowOf(c, metric)
		if r.Verdict != want || *r.Adjusted < *r.P {
			t.Errorf("%s: got %q with p %v, adjusted %v, want %q", metric, r.Verdict, *r.P, *r.Adjusted, want)
		}
	}
	if r := rowOf(c, "endToEnd.p50"); math.Abs(*r.Adjusted-5.0/4/64) > 1e-9 {
		t.Errorf("got an adjusted p of %v, want that of four in five", *r.Adjusted)
	}
	one, other := abOf(
		[]trial.Cell{cellOf("s", trial.TestLatency, latencies(x)...), cellOf("s", trial.TestThroughput, rates(x)...)},
		[]trial.Cell{cellOf("s", trial.TestLatency, latencies(x)...), cellOf("s", trial.TestThroughput, rates(y)...)})
	c = compared(t, one, other, Options{FDR: true})
	if r := rowOf(c, "ratePerSecond"); r.Verdict != Same || math.Abs(*r.Adjusted-5.0/64) > 1e-9 {
		t.Errorf("got %q with %v, want one of five at five times its p", r.Verdict, *r.Adjusted)
	}
}
