package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"queuelab/bench/trial"
)

// Difference is a condition that is not the same on both sides, or not the same
// within one of them.
type Difference struct {
	What         string   `json:"what"`
	A            string   `json:"a"` // several values, where its results differ: joined with " and "
	B            string   `json:"b"`
	Cells        []string `json:"cells,omitempty"` // none: the run's
	Incomparable bool     `json:"incomparable"`    // the numbers then mean different things
}

// unrecorded stands for what an older result does not say. It is no difference
// that refuses: nobody knows.
const unrecorded = "not recorded"

// fact is one condition of a run or a cell.
type fact struct {
	what, value  string
	incomparable bool
	close        func(a, b string) bool // near enough to pass over; nil: only equals are
}

// runFacts are the conditions of a whole run. The seeds are none: other seeds
// are what makes trials trials.
func runFacts(r trial.Result) []fact {
	h := r.Run.Host
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	within := func(factor, floor float64) func(a, b string) bool {
		return func(a, b string) bool {
			x, errX := strconv.ParseFloat(a, 64)
			y, errY := strconv.ParseFloat(b, 64)
			return errX == nil && errY == nil && (math.Abs(x-y) <= floor || math.Max(x, y) <= factor*math.Min(x, y))
		}
	}
	facts := []fact{
		{what: "schema", value: strconv.Itoa(r.Schema), incomparable: true},
		{what: "suite", value: r.Run.Suite, incomparable: true}, // it sets how long and how much
		{what: "processor", value: h.CPU, incomparable: true},
		{what: "cores", value: count(h.Cores), incomparable: true},
		{what: "memory in bytes", value: count(h.MemoryBytes), close: within(1.02, 0)},
		{what: "kernel", value: h.Kernel},
		{what: "clock source", value: h.ClockSource},
		{what: "commit", value: r.Run.Commit},
		{what: "Go", value: r.Run.GoVersion},
		{what: "load before", value: number(h.Load1), close: within(1.5, 0.5)},
		{what: "fsync p50 in µs", value: count(h.FsyncMicros.P50), close: within(1.5, 100)},
	}
	if n := h.NoiseMicros; n != nil {
		facts = append(facts, fact{what: "noise p99 in µs", value: count(n.P99), close: within(2, 100)})
	}
	if p := h.CPUPressure; p != nil {
		facts = append(facts, fact{what: "CPU pressure before in %", value: number(p.Before), close: within(1.5, 5)},
			fact{what: "CPU pressure during in %", value: number(p.During), close: within(1.5, 5)})
	}
	if f := r.Run.Floor; f != nil {
		facts = append(facts, fact{what: "the harness's own p50 in µs", value: count(f.EndToEnd.P50), close: within(1.5, 5)})
	}
	return facts
}

func count[T int | int64](n T) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// cellFacts are the conditions of a cell. The name of the broker is not among
// them: who compares two settings knows that they are two.
func cellFacts(c trial.Cell) []fact {
	facts := []fact{
		{what: "profile", value: c.Profile, incomparable: true},
		{what: "emulated", value: strconv.FormatBool(c.Broker.Emulated), incomparable: true},
		{what: "loop", value: c.LoopModel, incomparable: true},
		{what: "payload in bytes", value: strconv.Itoa(c.PayloadBytes), incomparable: true},
		{what: "consumers", value: count(c.Consumers), incomparable: true},
		{what: "handlers in one consumer", value: count(c.Concurrency), incomparable: true},
		{what: "prefetch", value: strconv.Itoa(c.Prefetch)},
		{what: "guarantee", value: c.Guarantee},
		{what: "confirmed by", value: c.Confirm},
		{what: c.Broker.Name + " version", value: c.Broker.Version},
	}
	if c.Broker.Version == "" && c.Broker.Name == "none" {
		facts = facts[:len(facts)-1]
	}
	if c.LoopModel == "open" && c.Test == trial.TestLatency {
		facts = append(facts, fact{what: "offered rate", value: strconv.FormatFloat(math.Round(c.RatePerSecond), 'f', 0, 64), incomparable: true})
	}
	facts = append(facts, loadFacts(c.Load)...)
	if c.Sale != nil && c.Valid > 0 { // sums over the trials
		facts = append(facts, fact{what: "buyers", value: strconv.Itoa(c.Sale.Buyers / c.Valid), incomparable: true},
			fact{what: "stock", value: strconv.Itoa(c.Sale.Stock / c.Valid), incomparable: true})
	}
	if c.SLO != nil {
		facts = append(facts, fact{what: "promise", value: c.SLO.Promise, incomparable: true})
	}
	for name, value := range effective(c) {
		facts = append(facts, fact{what: "effective " + name, value: cmp.Or(value, `""`)})
	}
	slices.SortStableFunc(facts, func(a, b fact) int { return cmp.Compare(a.what, b.what) })
	return facts
}

// loadFacts are all that the load consists of, by the names that it has in JSON:
// whatever is added to a load makes loads differ.
func loadFacts(l *trial.Load) []fact {
	data, err := json.Marshal(l)
	if err != nil {
		return nil // it holds nothing that could fail
	}
	var fields map[string]any
	if json.Unmarshal(data, &fields) != nil {
		return nil
	}
	// The cell has these itself, in older results too.
	delete(fields, "payloadBytes")
	delete(fields, "consumers")
	var facts []fact
	for name, v := range fields {
		value := fmt.Sprint(v)
		if value == "0" {
			value = ""
		}
		facts = append(facts, fact{what: "load " + name, value: value, incomparable: true})
	}
	return facts
}

// effective are the settings read back, without what is chosen anew for each
// trial: ports, the names of queues and of clusters.
func effective(c trial.Cell) map[string]string {
	m := map[string]string{}
	for name, value := range c.EffectiveSettings {
		switch name {
		case "url":
			u, err := url.Parse(value)
			if err != nil {
				continue
			}
			for p, v := range u.Query() {
				if p != "queue" && p != "group" {
					m["url."+p] = strings.Join(v, ",")
				}
			}
		case "cluster_name":
		default:
			m[name] = value
		}
	}
	return m
}

// ledgerOfFacts gathers the values of each condition on both sides.
type ledgerOfFacts struct {
	order []string
	of    map[string]*gathered
}

type gathered struct {
	fact
	a, b []string
}

func (l *ledgerOfFacts) add(side int, facts []fact) {
	if l.of == nil {
		l.of = map[string]*gathered{}
	}
	for _, f := range facts {
		g := l.of[f.what]
		if g == nil {
			g = &gathered{fact: f}
			l.of[f.what], l.order = g, append(l.order, f.what)
		}
		values := &g.a
		if side == 1 {
			values = &g.b
		}
		if v := cmp.Or(f.value, unrecorded); !slices.Contains(*values, v) {
			*values = append(*values, v)
		}
	}
}

// differences are the conditions that have more than one value.
func (l *ledgerOfFacts) differences(cell string) []Difference {
	var out []Difference
	for _, what := range l.order {
		g := l.of[what]
		if len(g.a) == 0 {
			g.a = []string{unrecorded}
		}
		if len(g.b) == 0 {
			g.b = []string{unrecorded}
		}
		known := slices.DeleteFunc(slices.Concat(g.a, g.b), func(v string) bool { return v == unrecorded })
		differ, unknown := false, slices.Contains(slices.Concat(g.a, g.b), unrecorded)
		for _, v := range known {
			differ = differ || v != known[0] && (g.close == nil || !g.close(v, known[0]))
		}
		if !differ && (!unknown || len(known) == 0) {
			continue
		}
		d := Difference{What: what, A: strings.Join(g.a, " and "), B: strings.Join(g.b, " and "), Incomparable: differ && g.incomparable}
		if cell != "" {
			d.Cells = []string{cell}
		}
		out = append(out, d)
	}
	return out
}

// conditions lists what differs, what makes incomparable first. Cells that
// differ alike share an entry.
func conditions(a, b Side, keys []key, cells [2]map[key][]trial.Cell) []Difference {
	var run ledgerOfFacts
	for side, s := range []Side{a, b} {
		for _, r := range s.Results {
			run.add(side, runFacts(r))
		}
	}
	out := run.differences("")
	for _, k := range keys {
		var l ledgerOfFacts
		for side := range cells {
			for _, c := range cells[side][k] {
				l.add(side, cellFacts(c))
			}
		}
		others := len(brokers(cells[0][k], cells[1][k])) > 1
		for _, d := range l.differences(k.name()) {
			if others && (d.A == unrecorded || d.B == unrecorded) && ofBroker(d.What) {
				continue // each broker has its own names for things
			}
			same := func(o Difference) bool { return len(o.Cells) > 0 && o.What == d.What && o.A == d.A && o.B == d.B }
			if i := slices.IndexFunc(out, same); i >= 0 {
				out[i].Cells = append(out[i].Cells, d.Cells...)
			} else {
				out = append(out, d)
			}
		}
	}
	slices.SortStableFunc(out, func(x, y Difference) int {
		switch {
		case x.Incomparable == y.Incomparable:
			return 0
		case x.Incomparable:
			return -1
		}
		return 1
	})
	return out
}

func brokers(cells ...[]trial.Cell) map[string]bool {
	names := map[string]bool{}
	for _, c := range slices.Concat(cells...) {
		names[c.Broker.Name] = true
	}
	return names
}

func ofBroker(what string) bool {
	return strings.HasSuffix(what, " version") || strings.HasPrefix(what, "effective ") && !strings.HasPrefix(what, "effective url.")
}

// String says what differs in one line.
func (d Difference) String() string {
	s := fmt.Sprintf("%s: %s | %s", d.What, d.A, d.B)
	switch {
	case len(d.Cells) > 2:
		s += fmt.Sprintf("  (%d cells, such as %s)", len(d.Cells), d.Cells[0])
	case len(d.Cells) > 0:
		s += "  (" + strings.Join(d.Cells, ", ") + ")"
	}
	return s
}
