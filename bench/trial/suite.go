package trial

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Spec is one cell to measure: what, under which load, how often.
type Spec struct {
	Setting Setting
	Test    string
	Fault   string
	Trials  int
	Load    LoadParams
	Sale    SaleParams
}

// LoadParams is the load of a trial, equal for every setting of a suite.
type LoadParams struct {
	Rate     float64       // latency and crash: offered messages a second
	Warmup   time.Duration // latency: excluded from the percentiles
	Duration time.Duration // latency; a p99.9 takes ten thousand messages
	Saturate time.Duration // throughput
	Messages uint64        // crash: published in all; the broker's backlog when it is killed
	Payload  int           // bytes
	Senders  int           // throughput: callers at once
	Batch    int           // throughput: messages in one call
	Window   int64         // throughput: most messages published and not yet delivered
	Prefetch int           // crash: what a client may take in advance, where that can be set
}

// SaleParams is the size of a sale.
type SaleParams struct {
	Buyers, Stock  int
	Connections    int
	ResultDeadline time.Duration // for the final answers, once everyone has clicked
}

// Suites by name, smallest first.
func Suites() []string { return []string{"smoke", "quick", "full"} }

// Suite lists the cells of a named suite over the given settings. trials
// overrides the suite's own number of trials of every crash and sale cell, and
// repeats of latency and throughput, unless it is 0.
func Suite(name string, settings []Setting, trials int) ([]Spec, error) {
	load := LoadParams{
		Rate: 1000, Warmup: time.Second, Duration: 10 * time.Second, Saturate: 3 * time.Second, Messages: 400, Payload: 100,
		Senders: 16, Batch: 64, Window: 20_000, Prefetch: 10,
	}
	sale := SaleParams{Buyers: 1000, Stock: 200, Connections: 32, ResultDeadline: 20 * time.Second}
	repeats := 1
	switch name {
	case "smoke":
		load.Duration, load.Saturate, load.Messages = 2*time.Second, 2*time.Second, 200
		sale.Buyers, sale.Stock = 400, 100
	case "quick":
	case "full":
		load.Duration, load.Messages, repeats = 20*time.Second, 1000, 10
		sale = SaleParams{Buyers: 5000, Stock: 500, Connections: 64, ResultDeadline: time.Minute}
	default:
		return nil, fmt.Errorf("unknown suite %q: the suites are %s", name, strings.Join(Suites(), ", "))
	}
	if trials > 0 {
		repeats = trials
	}
	var specs []Spec
	for _, s := range settings {
		add := func(test string, faults ...string) {
			for _, f := range faults {
				specs = append(specs, Spec{Setting: s, Test: test, Fault: f, Trials: repeats, Load: load, Sale: sale})
			}
		}
		add(TestLatency, FaultNone)
		add(TestThroughput, FaultNone)
		add(TestCrash, FaultNone, FaultConsumerKillMidHandle, FaultConsumerKillBeforeAck, FaultBrokerKill)
		add(TestSale, FaultNone, FaultServiceKill)
	}
	return specs, nil
}

// Runs reports whether the suite measures the setting; otherwise why not.
func (s Spec) Runs(suite string) (bool, string) {
	if suite == "smoke" && s.Setting.Broker != "" {
		return false, "the smoke suite needs nothing but Go, and this setting needs a real broker: `make bench` measures it"
	}
	return true, ""
}

// alone reports whether nothing else may run beside it.
func (s Spec) alone() bool { return s.Test == TestLatency || s.Test == TestThroughput }

// lane names what the spec cannot share with another at the same time: its broker.
func (s Spec) lane() string {
	if s.Setting.Broker == "" {
		return "memory"
	}
	return s.Setting.Broker + "/" + s.Setting.Conf
}

// estimate is how long the cell takes, for the time left; measured once on two cores.
func (s Spec) estimate() time.Duration {
	one := 6 * time.Second
	switch s.Test {
	case TestLatency:
		one = s.Load.Warmup + s.Load.Duration + 2*time.Second
	case TestThroughput:
		one = s.Load.Saturate + 2*time.Second
	case TestSale:
		one = 5 * time.Second
	}
	return one * time.Duration(s.Trials)
}

// lanes splits specs by lane, each in its own order.
func lanes(specs []Spec) [][]Spec {
	var names []string
	byName := map[string][]Spec{}
	for _, s := range specs {
		l := s.lane()
		if !slices.Contains(names, l) {
			names = append(names, l)
		}
		byName[l] = append(byName[l], s)
	}
	out := make([][]Spec, len(names))
	for i, n := range names {
		out[i] = byName[n]
	}
	return out
}
