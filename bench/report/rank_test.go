package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/trial"
)

// ranked is a latency cell of a profile whose p99 lies between low and high.
func ranked(setting string, low, high int64, change ...func(*trial.Cell)) trial.Cell {
	middle := (low + high) / 2
	p := trial.Percentiles{P50: middle / 4, P90: middle / 2, P99: middle, P999: middle * 2, Max: middle * 3, N: 20_000}
	c := trial.Cell{Backend: "rabbitmq", Setting: setting, Profile: trial.ProfileDiskSync, Test: trial.TestLatency, Fault: trial.FaultNone, Trials: 8, Valid: 8, RatePerSecond: 1000, PayloadBytes: 256,
		Verdict: trial.VerdictAsExpected, LatencyMicros: &trial.Latency{Publish: p, EndToEnd: p},
		Spread: map[string]trial.Interval{"endToEnd.p99": {Median: float64(middle), Low: float64(low), High: float64(high), N: 8}}}
	for _, f := range change {
		f(&c)
	}
	return c
}

func TestRanks(t *testing.T) {
	memory := func(c *trial.Cell) { c.Backend = "memory" }
	emulated := func(c *trial.Cell) { c.Broker.Emulated = true }
	noisy := func(c *trial.Cell) { c.Noisy = "all over the place" }
	few := func(c *trial.Cell) {
		i := c.Spread["endToEnd.p99"]
		i.N = 5
		c.Spread["endToEnd.p99"] = i
	}
	other := func(c *trial.Cell) { c.RatePerSecond = 500 }
	for name, c := range map[string]struct {
		cells []trial.Cell
		want  []string
	}{
		"apart":                         {[]trial.Cell{ranked("b", 20, 29), ranked("a", 10, 19)}, []string{"1 a", "2 b"}},
		"overlapping share their ranks": {[]trial.Cell{ranked("b", 15, 25), ranked("a", 10, 19), ranked("c", 30, 40)}, []string{"1–2 a", "1–2 b", "3 c"}},
		"a chain overlaps only with its neighbours": {[]trial.Cell{ranked("a", 10, 20), ranked("b", 18, 30), ranked("c", 28, 40)}, []string{"1–2 a", "1–3 b", "2–3 c"}},
		"the floor and the emulated have no rank":   {[]trial.Cell{ranked("f", 1, 2, memory), ranked("e", 3, 4, emulated), ranked("a", 10, 20)}, []string{"1 a", "– f: the harness's own floor: no competitor", "– e: emulated: not the real broker"}},
		"noise has no rank, and takes none":         {[]trial.Cell{ranked("n", 1, 90, noisy), ranked("a", 10, 20), ranked("b", 21, 30)}, []string{"1 a", "2 b", "– n: too noisy to rank: all over the place"}},
		"five trials have no rank":                  {[]trial.Cell{ranked("a", 10, 20, few), ranked("b", 21, 30)}, []string{"1 b", "– a: 5 trials, and 6 are needed to bound a median"}},
		"another rate is another race": {[]trial.Cell{ranked("o", 1, 2, other), ranked("a", 10, 20), ranked("b", 21, 30)},
			[]string{"1 a", "2 b", "– o: measured under other conditions than the rest (rate, payload, consumers, handlers or batch)"}},
		"a saturated latency has no rank": {[]trial.Cell{ranked("a", 10, 20, func(c *trial.Cell) { c.Verdict, c.Note = trial.VerdictSaturated, "half the rate" }), ranked("b", 21, 30)}, []string{"1 b", "– a: saturated: half the rate"}},
		"a few messages have no p99":      {[]trial.Cell{ranked("a", 10, 20, func(c *trial.Cell) { c.LatencyMicros.EndToEnd.N = 999 }), ranked("b", 21, 30)}, []string{"1 b", "– a: too few messages for a p99"}},
		"a result from before has none":   {[]trial.Cell{ranked("a", 10, 20, func(c *trial.Cell) { c.Spread = nil })}, []string{"– a: no spread between trials was recorded"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, g := range newView(trial.Result{Cells: c.cells}).groups() {
				for _, s := range g.standings(byLatency()) {
					line := s.Rank().String() + " " + s.Row.Name
					if !s.Why.Empty() {
						line += ": " + s.Why.String()
					}
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoRankingMixesProfiles(t *testing.T) {
	v := newView(sampleFull())
	n := 0
	for _, s := range v.rankingSections() {
		for _, l := range s.Grid.Lines {
			n++
			if l.Row.Profile != s.Group.Profile {
				t.Errorf("got %s, of %s, in the table of %s", l.Row.Setting(), l.Row.Profile, s.Group.Profile)
			}
		}
	}
	if n != len(v.rows) {
		t.Errorf("got %d rows in the rankings, want all %d", n, len(v.rows))
	}
	for _, sections := range [][]section{v.sections(v.latencyGrid()), v.sections(v.throughputGrid()), v.sections(v.crashGrid()), v.sections(v.resourcesGrid()), v.sections(v.saleGrid()), v.folded(v.promiseGrid(), v.ratesGrid())} {
		for _, s := range sections {
			for _, l := range append(s.Grid.Lines, s.Folded.Lines...) {
				if l.Row.Profile != s.Group.Profile {
					t.Errorf("%s: got %s, of %s, in the table of %s", s.Grid.Name, l.Row.Setting(), l.Row.Profile, s.Group.Profile)
				}
			}
		}
	}
}

// crashes is a crash cell with lossy of n crashes.
func crashes(setting, fault string, lossy, n int, change ...func(*trial.Cell)) trial.Cell {
	c := trial.Cell{Backend: "rabbitmq", Setting: setting, Profile: trial.ProfileDiskSync, Test: trial.TestCrash, Fault: fault, Trials: n, Valid: n, Verdict: trial.VerdictAsExpected, Loss: &trial.Loss{Trials: n, Lossy: lossy, Low: 0, High: 0.5}}
	c.Lost = int64(lossy) * 10
	for _, f := range change {
		f(&c)
	}
	return c
}

func TestTheVerdictForOrdersThatMustNotBeLost(t *testing.T) {
	kill := trial.FaultBrokerKill
	for name, c := range map[string]struct {
		cells  []trial.Cell
		state  string
		choice string
		says   []string
	}{
		"the fastest of those that lost nothing": {
			[]trial.Cell{ranked("slow", 30, 40), crashes("slow", kill, 0, 12), ranked("quick", 10, 20), crashes("quick", kill, 0, 12)},
			"✓", "rabbitmq/quick", []string{"0 of 12 crashes lost something", "lowest of those that qualify"}},
		"not the fastest, when that one lost": {
			[]trial.Cell{ranked("slow", 30, 40), crashes("slow", kill, 0, 12), ranked("quick", 10, 20), crashes("quick", kill, 1, 12)},
			"✓", "rabbitmq/slow", []string{"only one of its profile that qualifies", "rabbitmq/quick: lost messages, broker killed: 1 of 12"}},
		"a loss with a killed consumer counts too": {
			[]trial.Cell{ranked("a", 10, 20), crashes("a", kill, 0, 12), crashes("a", trial.FaultConsumerKillMidHandle, 2, 12)},
			"?", "", []string{"None of the settings measured here qualifies", "consumer killed mid-handle: 2 of 12"}},
		"both, when the intervals overlap": {
			[]trial.Cell{ranked("b", 15, 40), crashes("b", kill, 0, 12), ranked("a", 10, 20), crashes("a", kill, 0, 12)},
			"≈", "rabbitmq/a or rabbitmq/b", []string{"give them no order"}},
		"nobody, when the crashes are too few": {
			[]trial.Cell{ranked("a", 10, 20), crashes("a", kill, 0, 5)},
			"?", "rabbitmq/a", []string{"Too few crashes to decide", "0 of 5"}},
		"nobody, when the broker was not killed": {
			[]trial.Cell{ranked("a", 10, 20), crashes("a", trial.FaultConsumerKillBeforeAck, 0, 12)},
			"?", "", []string{"Nothing that would decide it was tested", "broker killed was not tested"}},
		"nobody, when the crashes were invalid": {
			[]trial.Cell{ranked("a", 10, 20), crashes("a", kill, 0, 0, func(c *trial.Cell) { c.Verdict, c.InvalidReasons = trial.VerdictInvalid, []string{"idle"} })},
			"?", "", []string{"Nothing that would decide it was tested", "broker killed: invalid: idle"}},
		"all that qualify, when their latency has no rank": {
			[]trial.Cell{ranked("a", 10, 20, func(c *trial.Cell) { c.Noisy = "wild" }), crashes("a", kill, 0, 12), crashes("b", kill, 0, 12)},
			"?", "rabbitmq/a or rabbitmq/b", []string{"this result cannot tell", "too noisy to rank: wild"}},
		"not beyond doubt, when a rival is noisy": {
			[]trial.Cell{ranked("a", 10, 20), crashes("a", kill, 0, 12), ranked("n", 1, 9, func(c *trial.Cell) { c.Noisy = "wild" }), crashes("n", kill, 0, 12)},
			"≈", "rabbitmq/a", []string{"the only one among those that qualify that can be ranked", "rabbitmq/n qualifies but is not ranked"}},
		"a sale that lost orders disqualifies": {
			[]trial.Cell{ranked("a", 10, 20), crashes("a", kill, 0, 12), {Backend: "rabbitmq", Setting: "a", Profile: trial.ProfileDiskSync, Test: trial.TestSale, Fault: trial.FaultServiceKill, Valid: 1, Trials: 1,
				Verdict: trial.VerdictAsExpected, Sale: &trial.Sale{Stock: 5, Sold: 3, LostOrders: 2}}},
			"?", "", []string{"the sale lost 2 orders (service killed)"}},
		"no emulated broker wins": {
			[]trial.Cell{ranked("a", 10, 20, func(c *trial.Cell) { c.Broker.Emulated = true }), crashes("a", kill, 0, 12, func(c *trial.Cell) { c.Broker.Emulated = true })},
			"?", "", []string{"No setting of this profile is in this result"}},
		"a result from before counts its valid trials": {
			[]trial.Cell{ranked("a", 10, 20, func(c *trial.Cell) { c.Spread = nil }), crashes("a", kill, 0, 12, func(c *trial.Cell) { c.Loss = nil })},
			"✓", "rabbitmq/a", []string{"0 of 12 crashes lost something", "above 22.1 % excluded", "its latency has no rank"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newView(trial.Result{Cells: c.cells}).answers()[0]
			if a.State.Symbol != c.state || a.Choice.String() != c.choice {
				t.Errorf("got %s %q, want %s %q", a.State.Symbol, a.Choice, c.state, c.choice)
			}
			all := a.Text.String()
			for _, o := range a.Out {
				all += "\n" + o.String()
			}
			for _, want := range c.says {
				if !strings.Contains(all, want) {
					t.Errorf("got no %q in:\n%s", want, all)
				}
			}
		})
	}
}

func TestTheVerdictsOfTheSample(t *testing.T) {
	var got []string
	for _, a := range newView(sampleFull()).answers() {
		got = append(got, fmt.Sprintf("%s %s: %s", a.State.Symbol, a.Group.Profile, a.Choice))
	}
	want := []string{"✓ disk-sync: rabbitmq/classic", "✓ disk-async: redis-streams/aof-everysec", "✓ memory: redis-streams/no-persistence", "≈ at-most-once: redis-pubsub/default or redis-list/aof-everysec"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, a := range newView(sample()).answers()[:2] { // three crashes each
		if a.State.Symbol != "?" {
			t.Errorf("%s: got %s, want no decision over three crashes", a.Group.Profile, a.State.Symbol)
		}
	}
}

func TestAPromiseIsRead(t *testing.T) {
	for promise, want := range map[string]string{
		"p99<20ms,lost=0": "p99 20000 true", "p99.9 <= 1s": "p999 1e+06 true", "p999<5ms": "p999 5000 true", "lost=0,p50<250us": "p50 250 true", "max<2m": "max 1.2e+08 true",
		"lost=0": "p99 0 false", "p99<": "p99 0 false", "publish.p50<5ms, p90<3ms": "p90 3000 true", "publish.p99<5ms": "p99 0 false", "p95<3ms": "p99 0 false", "": "p99 0 false",
	} {
		key, us, ok := promisedLatency(promise)
		if got := fmt.Sprintf("%s %g %v", key, us, ok); got != want {
			t.Errorf("%q: got %s, want %s", promise, got, want)
		}
	}
}

func TestACurveIsMarkedNearestToTheNamedQuantiles(t *testing.T) {
	var points []curvePoint
	for _, q := range []float64{0, 0.205672, 0.498813, 0.748, 0.9, 0.9498, 0.98902, 0.99} {
		points = append(points, curvePoint{Q: q})
	}
	got := markedPoints(points)
	for i := range points {
		if want := i == 2 || i == 4 || i == 7; got[i] != want {
			t.Errorf("q %v: got marked %v, want %v", points[i].Q, got[i], want)
		}
	}
}

func TestTheControlIsNoCrash(t *testing.T) {
	v := newView(trial.Result{Cells: []trial.Cell{crashes("a", trial.FaultNone, 0, 12), crashes("a", trial.FaultBrokerKill, 1, 8)}})
	if got := lossField(v.rows[0]).Text.String(); got != "1 of 8 ✗" {
		t.Errorf("got %q, want 1 of 8 ✗", got)
	}
}
