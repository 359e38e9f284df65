package trial

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"queuelab/bench/fault"
	"queuelab/bench/load"
	"queuelab/bench/node"
)

// Spec is one cell to measure: what, under which load, how often.
type Spec struct {
	Setting Setting
	Test    string
	Fault   string
	Trials  int
	Load    LoadParams
	Sale    SaleParams

	n      int     // the trial under way
	moment float64 // its, see fault.Scene
}

// LoadParams is the load of a trial, equal for every setting of a suite.
type LoadParams struct {
	Rate     float64       // latency and crash: offered messages a second; where Shape is set, its mean
	Shape    string        // latency: as load.ParseShape reads it; "" is constant at Rate
	Warmup   time.Duration // latency: excluded from the percentiles
	Duration time.Duration // latency; a p99.9 takes ten thousand messages
	Saturate time.Duration // throughput
	Messages uint64        // crash: published in all; the broker's backlog when it is killed
	Payload  int           // bytes
	Content  string        // what they are; "" is text
	Keys     string        // "" is sixteen, drawn
	Senders  int           // throughput: callers at once
	Batch    int           // throughput: messages in one call
	Window   int64         // throughput: most messages published and not yet delivered
	Prefetch int           // crash: what a client may take in advance, where that can be set

	Producers   int    // publishers; 0 is 1
	Consumers   int    // consumers; 0 is 1
	Connections int    // queues opened, which publishers and consumers take turns to use; 0 is 1
	Promise     string // slo
	InFlight    int    // latency: most Publish calls without an answer; 0: more than any queue needs
}

// LoadOverride is what a command line says of the load; zero values leave what
// the suite has.
type LoadOverride struct {
	Rate                 float64
	Shape, Content, Keys string
	Duration             time.Duration
	Payload              int
	Producers, Consumers int
	Promise              string
}

// Check says what cannot be read or is beyond reason, by the name of its flag.
func (o LoadOverride) Check() error {
	for _, x := range []struct {
		flag               string
		given              any
		value, least, most float64
		want               string
	}{
		{"rate", o.Rate, o.Rate, 1, 1_000_000, "1 to 1000000 messages a second"},
		{"payload", o.Payload, float64(o.Payload), 1, load.MaxSize, "1 to 10485760 bytes"},
		{"duration", o.Duration, o.Duration.Seconds(), 1, 3600, "1s to 1h"},
		{"producers", o.Producers, float64(o.Producers), 1, 64, "1 to 64"},
		{"consumers", o.Consumers, float64(o.Consumers), 1, 64, "1 to 64"},
	} {
		if x.value != 0 && !(x.value >= x.least && x.value <= x.most) {
			return fmt.Errorf("--%s=%v: want %s", x.flag, x.given, x.want)
		}
	}
	if o.Promise != "" {
		if _, err := ParsePromise(o.Promise); err != nil {
			return fmt.Errorf("--slo: %w", err)
		}
	}
	if o.Shape != "" {
		if o.Rate != 0 {
			return fmt.Errorf("a shape has its own rate: give --rate or --shape, not both")
		}
		if _, err := load.ParseShape(o.Shape, 1); err != nil {
			return err
		}
	}
	if _, err := load.ParseContent(cmp.Or(o.Content, node.DefaultContent)); err != nil {
		return err
	}
	_, err := load.ParseKeys(cmp.Or(o.Keys, node.DefaultKeys), 1)
	return err
}

// Apply replaces what the override has.
func (o LoadOverride) Apply(p LoadParams) LoadParams {
	p.Rate, p.Duration = cmp.Or(o.Rate, p.Rate), cmp.Or(o.Duration, p.Duration)
	p.Payload, p.Promise = cmp.Or(o.Payload, p.Payload), cmp.Or(o.Promise, p.Promise)
	p.Shape, p.Content, p.Keys = cmp.Or(o.Shape, p.Shape), cmp.Or(o.Content, p.Content), cmp.Or(o.Keys, p.Keys)
	p.Producers, p.Consumers = cmp.Or(o.Producers, p.Producers), cmp.Or(o.Consumers, p.Consumers)
	return p
}

// describe is the load as the result has it.
func (s Spec) describe() Load {
	if s.Test == TestSale {
		return Load{}
	}
	p := s.Load
	l := Load{
		Shape: "closed", Content: cmp.Or(p.Content, node.DefaultContent), Keys: cmp.Or(p.Keys, node.DefaultKeys),
		PayloadBytes: p.Payload, Producers: max(1, p.Producers), Consumers: max(1, p.Consumers), Batch: max(1, p.Batch),
		Millis: p.Saturate.Milliseconds(),
	}
	switch s.Test {
	case TestLatency:
		l.Shape, l.Batch, l.Millis = p.shape(), 1, p.Duration.Milliseconds()
	case TestSLO:
		l.Shape, l.Batch, l.Millis, l.Promise = "constant", 1, p.dwell().Milliseconds(), p.Promise
	case TestScalingConsumers:
		l.Keys = manyKeys
	case TestCrash, TestFault:
		l.Shape, l.Batch, l.Keys, l.Millis = fmt.Sprintf("constant:%g", p.Rate/2), 1, "uniform:1", 0
		if s.Setting.Broker == "" {
			l.Shape = fmt.Sprintf("constant:%g", p.Rate)
		}
	}
	return l
}

func (p LoadParams) shape() string { return cmp.Or(p.Shape, fmt.Sprintf("constant:%g", p.Rate)) }

// Of reports whether the cell is the spec's, under whatever load.
func (s Spec) Of(c Cell) bool { return s.names(c.Backend, c.Setting, c.Test, c.Fault) }

// Finished reports whether the cell is the spec's, under its load, with all its
// trials and a verdict that stands.
func (s Spec) Finished(c Cell) bool {
	switch {
	case !s.Of(c) || c.Verdict == VerdictInvalid || c.Verdict == VerdictSkipped:
		return false
	case c.Verdict == VerdictNotApplicable:
		return true
	}
	var load Load
	if c.Load != nil {
		load = *c.Load
	}
	return c.Trials == s.Trials && load == s.describe()
}

func (s Spec) names(backend, setting, test, fault string) bool {
	return backend == s.Setting.Backend && setting == s.Setting.label() && test == s.Test && fault == s.Fault
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
// repeats of latency and throughput, unless it is 0. tests picks some of the
// suite's tests by name, and the long ones into the smaller suites; none: all
// that the suite has.
func Suite(name string, settings []Setting, trials int, tests ...string) ([]Spec, error) {
	load := LoadParams{
		Rate: 1000, Warmup: time.Second, Duration: 10 * time.Second, Saturate: 3 * time.Second, Messages: 400, Payload: 100,
		Senders: 16, Batch: 64, Window: 20_000, Prefetch: 10,
	}
	sale := SaleParams{Buyers: 1500, Stock: 300, Connections: 32, ResultDeadline: 20 * time.Second}
	repeats, crashes := 1, 1
	switch name {
	case "smoke":
		load.Duration, load.Saturate, load.Messages = 2*time.Second, 2*time.Second, 200
		sale.Buyers, sale.Stock = 1000, 200
	case "quick":
	case "full":
		// Six is the fewest that bound a median at 95 %.
		load.Duration, load.Messages, repeats, crashes = 20*time.Second, 1000, 6, 10
		sale = SaleParams{Buyers: 5000, Stock: 500, Connections: 64, ResultDeadline: time.Minute}
	default:
		return nil, fmt.Errorf("unknown suite %q: the suites are %s", name, strings.Join(Suites(), ", "))
	}
	if trials > 0 {
		repeats, crashes = trials, trials
	}
	load.Promise = DefaultPromise
	var specs []Spec
	for _, s := range settings {
		add := func(n int, test string, faults ...string) {
			for _, f := range faults {
				specs = append(specs, Spec{Setting: s, Test: test, Fault: f, Trials: n, Load: load, Sale: sale})
			}
		}
		add(repeats, TestLatency, FaultNone)
		add(repeats, TestThroughput, FaultNone)
		add(crashes, TestCrash, FaultNone, FaultConsumerKillMidHandle, FaultConsumerKillBeforeAck, FaultBrokerKill)
		add(crashes, TestSale, FaultNone, FaultServiceKill)
		add(max(1, trials), TestSLO, FaultNone)
		for _, test := range ScalingTests() {
			add(cmp.Or(trials, min(repeats, 3)), test, FaultNone)
		}
	}
	if name != "full" {
		// They take long, and are measured when asked for by name.
		specs = slices.DeleteFunc(specs, func(s Spec) bool { return !slices.Contains(tests, s.Test) && s.long() })
	}
	if len(tests) > 0 {
		specs = slices.DeleteFunc(specs, func(s Spec) bool { return !slices.Contains(tests, s.Test) })
	}
	return specs, nil
}

// Tests lists every test.
func Tests() []string {
	return append([]string{TestLatency, TestThroughput, TestCrash, TestFault, TestSale, TestSLO}, ScalingTests()...)
}

// ScalingTests lists the dimensions along which throughput is measured.
func ScalingTests() []string {
	return []string{TestScalingConsumers, TestScalingConnections, TestScalingPayload, TestScalingBatch}
}

func (s Spec) scaling() bool { return slices.Contains(ScalingTests(), s.Test) }
func (s Spec) long() bool    { return s.scaling() || s.Test == TestSLO }

// notApplicable says why the test means nothing to the setting; "" where it does.
func (s Spec) notApplicable() string {
	switch {
	case s.Test == TestScalingConsumers && s.Setting.Backend == "redis-pubsub":
		return "every subscriber gets every message: more of them share nothing"
	case s.Test == TestScalingConnections && s.Setting.Broker == "":
		return "it lives in the process: there is no connection"
	}
	return ""
}

// Runs reports whether the suite measures the setting; otherwise why not.
func (s Spec) Runs(suite string) (bool, string) {
	if suite == "smoke" && s.Setting.Broker != "" {
		return false, "the smoke suite needs nothing but Go, and this setting needs a real broker: `make bench` measures it"
	}
	return true, ""
}

// alone reports whether nothing else may run beside it.
func (s Spec) alone() bool {
	if s.Test == TestFault {
		f, _ := fault.Lookup(s.Fault)
		return f.Alone
	}
	return s.Test != TestCrash && s.Test != TestSale
}

// crashes reports whether the spec's trials are single faults.
func (s Spec) crashes() bool { return s.Test == TestCrash || s.Test == TestFault }

// purpose tells apart the brokers of one settings file that cannot stand in for
// one another.
func (s Spec) purpose() string {
	if f, _ := fault.Lookup(s.Fault); s.Test == TestFault && f.Storage {
		return "storage"
	} else if s.Test == TestFault && f.Network {
		return "network"
	}
	return ""
}

// lane names what the spec cannot share with another at the same time: its broker.
func (s Spec) lane() string {
	if s.Setting.Broker == "" {
		return "memory"
	}
	return strings.TrimSuffix(s.Setting.Broker+"/"+s.Setting.Conf+"/"+s.purpose(), "/")
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
