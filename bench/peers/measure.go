package peers

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/host/meter"
	"queuelab/bench/trial"
)

// Options say what to measure.
type Options struct {
	Backends string  // names, separated by commas; "" and "all" are every one
	Pairs    int     // of each row, at least 1
	Scale    float64 // of the numbers of messages and of the durations
	Commit   string
	Host     trial.Host                       // as host.Facts has it
	Say      func(format string, args ...any) // progress for people
	Keep     func(Result) error               // called as rows are finished, so that an interrupted run keeps them

	change func([]comparison) []comparison // tests have less time, and tools that fail
}

// Check returns what is wrong with the options, as Measure would.
func (o Options) Check() error {
	_, err := o.rows()
	return err
}

func (o Options) rows() ([]comparison, error) {
	if o.Pairs < 1 {
		return nil, fmt.Errorf("%d pairs: want at least 1", o.Pairs)
	}
	if !(o.Scale > 0 && o.Scale <= 100) {
		return nil, fmt.Errorf("a scale of %v: want above 0, and at most 100", o.Scale)
	}
	rows, err := selectRows(o.Backends)
	if o.change != nil {
		rows = o.change(rows)
	}
	return rows, err
}

// sideWithin bounds one side, fillWithin what is published before it, and
// startWithin a broker's start. None is near what a busy machine needs.
const (
	sideWithin  = 3 * time.Minute
	fillWithin  = 3 * time.Minute
	startWithin = 3 * time.Minute
)

// Measure runs every row, broker after broker. A row whose tool or broker is
// missing is in Skipped, and one that failed in Failed, with what the tool said;
// the others are measured all the same. The error is that of an option, of Keep,
// or of ctx: then what was finished is in the result.
func Measure(ctx context.Context, o Options) (Result, error) {
	todo, err := o.rows()
	if err != nil {
		return Result{}, err
	}
	t := findTools()
	m := &measuring{o: o, tools: t, result: Result{
		Rows: []Row{}, Latency: []LatencyRow{}, Skipped: []Skipped{}, Failed: []Skipped{},
		StartedAt: time.Now(), Pairs: o.Pairs, Scale: o.Scale, PayloadBytes: payload, Commit: o.Commit,
		Note: note(o), Host: o.Host, Versions: t.versions(ctx),
	}}
	for len(todo) > 0 && ctx.Err() == nil {
		kind := todo[0].broker
		n := slices.IndexFunc(todo, func(c comparison) bool { return c.broker != kind })
		if n < 0 {
			n = len(todo)
		}
		if err := m.broker(ctx, todo[:n]); err != nil {
			return m.finish(false), err
		}
		todo = todo[n:]
	}
	return m.finish(ctx.Err() == nil), ctx.Err()
}

func note(o Options) string {
	s := "Rates are messages a second. Medians over the pairs; a ratio is the median of the pairs' ratios. " +
		"Client, tool and broker share this machine."
	if o.Pairs < FewestPairs {
		s += fmt.Sprintf(" With %s of each row a median says little: take at least %d.", plural(o.Pairs, "pair"), FewestPairs)
	}
	if o.Scale < 1 {
		s += " The runs were shorter than they should be for a claim."
	}
	return s
}

// selectRows returns the rows of the backends, those of one broker together.
func selectRows(list string) ([]comparison, error) {
	all := append(comparisons(), latencies()...)
	var known []string
	for _, c := range all {
		if !slices.Contains(known, c.backend) {
			known = append(known, c.backend)
		}
	}
	wanted := known
	if list != "" && list != "all" {
		wanted = nil
		for name := range strings.SplitSeq(list, ",") {
			name = strings.TrimSpace(name)
			if !slices.Contains(known, name) {
				return nil, fmt.Errorf("unknown backend %q: those with a tool beside them are %s", name, strings.Join(known, ", "))
			}
			wanted = append(wanted, name)
		}
	}
	var rows []comparison
	for _, kind := range []string{"redis", "rabbitmq", "kafka"} {
		for _, c := range all {
			if c.broker == kind && slices.Contains(wanted, c.backend) {
				rows = append(rows, c)
			}
		}
	}
	return rows, nil
}

type measuring struct {
	o      Options
	tools  tools
	result Result
	queues int // named so far
}

func (m *measuring) finish(complete bool) Result {
	m.result.FinishedAt, m.result.Complete = time.Now(), complete
	return m.result
}

// broker measures the rows of one broker on one start of it.
func (m *measuring) broker(ctx context.Context, rows []comparison) error {
	kind := rows[0].broker
	if reason := unavailable(ctx, kind); reason != "" {
		for _, c := range rows {
			m.skip(c, reason)
		}
		return m.keep()
	}
	starting, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	b, err := broker.Start(starting, broker.Options{Kind: kind, Setting: rows[0].conf})
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), stop(b))
	}
	if err != nil {
		for _, c := range rows {
			m.fail(c, err)
		}
		return m.keep()
	}
	if v, err := b.Version(ctx); err == nil {
		m.result.Versions[kind] = v
	}
	for _, c := range rows {
		if reason := m.tools.missing[c.tool]; reason != "" {
			m.skip(c, reason)
			continue
		}
		err := m.row(ctx, b, c)
		switch {
		case ctx.Err() != nil:
			return errors.Join(ctx.Err(), stop(b))
		case err != nil:
			m.fail(c, err)
		}
		if err := m.keep(); err != nil {
			return errors.Join(err, stop(b))
		}
	}
	return stop(b)
}

// unavailable says why a broker cannot be had here; "": it can.
func unavailable(ctx context.Context, kind string) string {
	if _, err := broker.Available(ctx, kind); err != nil {
		return err.Error()
	}
	return ""
}

func stop(b *broker.Broker) error {
	if b == nil {
		return nil
	}
	return b.Stop()
}

func (m *measuring) skipped(c comparison, reason string) Skipped {
	return Skipped{c.backend, c.client, c.tool, c.guarantee, c.direction, reason}
}

func (m *measuring) skip(c comparison, reason string) {
	m.result.Skipped = append(m.result.Skipped, m.skipped(c, reason))
	m.o.Say("%s: skipped: %s", c, reason)
}

func (m *measuring) fail(c comparison, err error) {
	m.result.Failed = append(m.result.Failed, m.skipped(c, err.Error()))
	m.o.Say("%s: failed: %v", c, err)
}

func (m *measuring) keep() error {
	if m.o.Keep == nil {
		return nil
	}
	return m.o.Keep(m.result)
}

// scaled is c with its sizes scaled. What is popped or acked 100 at once stays a
// multiple of that.
func (c comparison) scaled(by float64) comparison {
	n := func(v int64, step int64) int64 {
		if v == 0 {
			return 0
		}
		return max(1, int64(float64(v)*by)/step) * step
	}
	c.count, c.warm = n(c.count, 200), n(c.warm, 50)
	c.length, c.rest = time.Duration(float64(c.length)*by), time.Duration(float64(c.rest)*by)
	return c
}

// row measures one comparison, all its pairs.
func (m *measuring) row(ctx context.Context, b *broker.Broker, c comparison) error {
	c = c.scaled(m.o.Scale)
	var pairs []pair
	var s *stage
	defer func() {
		if s != nil {
			s.close()
		}
	}()
	for i := range m.o.Pairs {
		if s == nil {
			var err error
			if s, err = m.prepare(ctx, b, c, i); err != nil {
				return err
			}
		}
		p, err := m.pair(ctx, s, c, i)
		if err != nil {
			return err
		}
		pairs = append(pairs, p)
		if !c.once {
			s.close()
			s = nil
		}
	}
	if c.direction == latencyDirection {
		m.result.Latency = append(m.result.Latency, latencyRow(c, pairs))
	} else {
		m.result.Rows = append(m.result.Rows, rateRow(c, pairs))
	}
	return nil
}

// pair is one run of either side.
type pair struct {
	toolFirst  bool
	tool, ours outcome
	began      time.Time
	pressure   float64
}

// ratio is ours by the tool's.
func (p pair) ratio(c comparison) float64 {
	if c.direction == latencyDirection {
		return p.ours.Latency.P50 / p.tool.Latency.P50
	}
	return p.ours.Rate / p.tool.Rate
}

// pair runs both sides, the tool first in every other pair.
func (m *measuring) pair(ctx context.Context, s *stage, c comparison, i int) (pair, error) {
	p := pair{toolFirst: i%2 == 0, began: time.Now()}
	p.pressure, _ = meter.CPUPressure()
	order := []string{toolSide, oursSide}
	if !p.toolFirst {
		slices.Reverse(order)
	}
	for _, side := range order {
		x, err := m.process(s, c, side, i)
		if err != nil {
			return p, err
		}
		into, who := &p.tool, c.tool
		if side == oursSide {
			into, who = &p.ours, "our backend"
		}
		if c.direction == latencyDirection {
			*into, err = x.latency(ctx, sideWithin)
		} else {
			into.Rate, err = m.rate(ctx, s, side, x)
		}
		if err != nil {
			return p, fmt.Errorf("%s: %w", who, err)
		}
	}
	if c.direction == latencyDirection {
		m.o.Say("%s, pair %d of %d: p50 bare %.0f µs, ours %.0f µs, ratio %.2f", c, i+1, m.o.Pairs, p.tool.Latency.P50, p.ours.Latency.P50, p.ratio(c))
	} else {
		m.o.Say("%s, pair %d of %d: tool %.0f/s, ours %.0f/s, ratio %.2f", c, i+1, m.o.Pairs, p.tool.Rate, p.ours.Rate, p.ratio(c))
	}
	return p, nil
}

// latency runs a side that tells a latency.
func (p process) latency(ctx context.Context, deadline time.Duration) (outcome, error) {
	out, err := p.run(ctx, deadline)
	if err != nil {
		return outcome{}, err
	}
	r, err := parseOutcome(out)
	if err == nil && !(r.Latency.P50 > 0) {
		err = errors.New("it measured no latency")
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w; it wrote:\n%s", filepath.Base(p.argv[0]), err, quote(out))
	}
	return r, nil
}

// rate runs a side that tells a rate, fed meanwhile where it needs to be.
func (m *measuring) rate(ctx context.Context, s *stage, side string, x process) (float64, error) {
	if !s.c.feed {
		return x.measure(ctx, sideWithin)
	}
	feeding, cancel := context.WithCancel(ctx)
	defer cancel()
	var feeder sync.WaitGroup
	var ferr error
	feeder.Go(func() {
		if ferr = s.feed(feeding, side); ferr != nil {
			cancel() // or the side would wait for ever
		}
	})
	rate, err := x.measure(feeding, sideWithin)
	cancel()
	feeder.Wait()
	if ferr != nil && !errors.Is(ferr, context.Canceled) {
		return 0, fmt.Errorf("feed it: %w", ferr)
	}
	return rate, err
}

// process is a side of pair i.
func (m *measuring) process(s *stage, c comparison, side string, i int) (process, error) {
	url := s.url(side, i)
	if side == toolSide && c.bare == "" {
		w, err := parseWhere(url)
		if err != nil {
			return process{}, err
		}
		return c.toolSide(m.tools, w, c), nil
	}
	o := c.oursSide
	o.URL, o.Count, o.Warm, o.For, o.WarmFor = url, c.count, c.warm, c.length, c.rest
	if side == toolSide {
		o.Bare = c.bare
	}
	return o.process()
}

func rateRow(c comparison, pairs []pair) Row {
	r := Row{
		Backend: c.backend, Client: c.client, Tool: c.tool, Guarantee: c.guarantee, Direction: c.direction,
		Target:       target(c.backend, c.client, c.direction),
		ToolSettings: c.theirs, OursSettings: c.ours, Timed: c.timed,
	}
	for _, p := range pairs {
		r.Pairs = append(r.Pairs, Pair{p.toolFirst, p.tool.Rate, p.ours.Rate, p.ratio(c), p.began, p.pressure})
	}
	r.ToolRate = median(r.Pairs, func(p Pair) float64 { return p.ToolRate })
	r.OursRate = median(r.Pairs, func(p Pair) float64 { return p.OursRate })
	r.Ratio = median(r.Pairs, func(p Pair) float64 { return p.Ratio })
	r.Reached = r.Ratio >= r.Target
	return r
}

func latencyRow(c comparison, pairs []pair) LatencyRow {
	r := LatencyRow{
		Backend: c.backend, Client: c.client, Guarantee: c.guarantee, Target: latencyTarget, RatePerSecond: latencyRate,
		RawSettings: c.theirs, OursSettings: c.ours,
	}
	for _, p := range pairs {
		r.Pairs = append(r.Pairs, LatencyPair{p.toolFirst, p.tool.Latency, p.ours.Latency, p.ratio(c), p.began, p.pressure})
	}
	r.RawP50Micros = median(r.Pairs, func(p LatencyPair) float64 { return p.Raw.P50 })
	r.OursP50Micros = median(r.Pairs, func(p LatencyPair) float64 { return p.Ours.P50 })
	r.Ratio = median(r.Pairs, func(p LatencyPair) float64 { return p.Ratio })
	r.Saturated = r.RawP50Micros >= saturatedAt
	r.Reached = r.Ratio <= r.Target && !r.Saturated
	return r
}

// median of an even number is the mean of the middle two.
func median[T any](xs []T, of func(T) float64) float64 {
	vs := make([]float64, len(xs))
	for i, x := range xs {
		vs[i] = of(x)
	}
	slices.Sort(vs)
	n := len(vs)
	return (vs[(n-1)/2] + vs[n/2]) / 2
}
