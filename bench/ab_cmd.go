package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"queuelab/bench/compare"
	"queuelab/bench/report"
	"queuelab/bench/trial"
)

// enoughPairs is from where on one metric of ten can be found to differ, where
// the other nine do not.
const enoughPairs = 10

type abCmd struct {
	A        string        `arg:"" help:"A setting, backend/setting, as 'queuelab list' has them."`
	B        string        `arg:"" help:"Another, or the same again."`
	Pairs    int           `default:"10" help:"How often each is measured, in pairs, each pair in an order by chance."`
	Tests    string        `default:"latency,throughput" help:"As in run, separated by commas."`
	Rate     float64       `default:"0" help:"Latency: messages a second; 0: 1000."`
	Duration time.Duration `default:"0" help:"How long each trial of latency and throughput takes its load; 0: 10s and 3s."`
	Payload  int           `default:"0" help:"Bytes of a message; 0: 100."`
	Out      string        `placeholder:"DIR" help:"Where the result goes; default bench/results/ab-TIME."`
	Force    bool          `help:"Replace the result in --out; and compare across profiles."`
	Seed     uint64        `default:"0" help:"Seed of the order; 0: by chance. It is in the result."`
	Alpha    float64       `default:"0.05" help:"How often any difference may be found where there is none."`
	JSON     bool          `name:"json" help:"Print the comparison machine-readable."`

	brokerFlags
}

func (abCmd) Help() string {
	return `Measures two settings in turn, on the same machine in the same minutes, and compares
them in pairs: what the machine does meanwhile falls on both. The two of a pair come
in an order by chance. The result is one of 'run', and 'queuelab compare DIR' prints
the comparison again.

Examples:
  queuelab ab redis-streams/aof-always rabbitmq/quorum
  queuelab ab kafka/acks-1 kafka/acks-all --pairs 20 --tests latency --rate 5000
  queuelab ab redis-list/aof-always redis-list/aof-always    # shows no difference`
}

func (c *abCmd) Validate() error {
	switch {
	case c.Pairs < 1 || c.Pairs > 1000:
		return fmt.Errorf("--pairs=%d: want 1 to 1000", c.Pairs)
	case !(c.Alpha > 0 && c.Alpha < 1):
		return fmt.Errorf("--alpha=%v: want more than 0 and less than 1", c.Alpha)
	}
	return c.load().Check()
}

func (c *abCmd) load() trial.LoadOverride {
	return trial.LoadOverride{Rate: c.Rate, Duration: c.Duration, Payload: c.Payload}
}

// specs are the cells of both settings, under one load.
func (c *abCmd) specs() ([]trial.Spec, error) {
	var settings []trial.Setting
	for _, side := range []struct{ name, label string }{{c.A, "A"}, {c.B, "B"}} {
		s, err := trial.SelectSettings(side.name)
		if err != nil {
			return nil, err
		}
		if len(s) != 1 {
			return nil, fmt.Errorf("%q is %d settings: name one, as in %s", side.name, len(s), s[0])
		}
		s[0].Label = side.label
		settings = append(settings, s[0])
	}
	tests := strings.Split(c.Tests, ",")
	for i, t := range tests {
		if tests[i] = strings.TrimSpace(t); trial.TestHelp()[tests[i]] == "" {
			return nil, fmt.Errorf("--tests: unknown test %q: the tests are %s", t, strings.Join(trial.Tests(), ", "))
		}
	}
	specs, err := trial.Suite("quick", settings, c.Pairs, tests...)
	for i := range specs {
		s := &specs[i]
		s.Load = c.load().Apply(s.Load)
		if c.Duration > 0 {
			s.Load.Saturate = c.Duration
		}
	}
	return specs, err
}

func (c *abCmd) Run(e *env) error {
	specs, err := c.specs()
	if err != nil {
		return usage(e, err)
	}
	if profiles := []string{specs[0].Setting.Profile, specs[len(specs)-1].Setting.Profile}; profiles[0] != profiles[1] && !c.Force {
		return usage(e, fmt.Errorf("%s has the profile %s and %s has %s: they promise different things, and whichever is faster, the numbers say nothing; --force compares all the same", c.A, profiles[0], c.B, profiles[1]))
	}
	if c.Pairs < enoughPairs {
		fmt.Fprintf(e.stderr, "queuelab: warning: %d pairs are few: fewer than %d hardly find what is there\n", c.Pairs, enoughPairs)
	}
	result, err := c.measure(e, specs)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.out(c.JSON), "%s: result.json, report.md and report.html\n\n", c.Out)
	side := func(s trial.Setting) compare.Side {
		both := compare.Of(c.Out, result)
		both.Paths[0] = c.Out
		return both.Choose(s.String())
	}
	found, err := compare.Compare(side(specs[0].Setting), side(specs[len(specs)-1].Setting), compare.Options{Alpha: c.Alpha, Force: c.Force, FDR: true})
	if err != nil {
		return explainUnmeasured(result, err)
	}
	if err := show(e, found, c.JSON); err != nil {
		return err
	}
	if found.Refused {
		return exitError(2)
	}
	return nil
}

// explainUnmeasured says why a setting has no cell, where the run knows.
func explainUnmeasured(result trial.Result, err error) error {
	for _, cell := range result.Cells {
		if cell.Verdict == trial.VerdictSkipped || cell.Verdict == trial.VerdictNotApplicable {
			return fmt.Errorf("%s/%s %s: %s: %s", cell.Backend, cell.Setting, cell.Test, cell.Verdict, cell.Note)
		}
	}
	return err
}

// measure runs the pairs, and writes the result.
func (c *abCmd) measure(e *env, specs []trial.Spec) (trial.Result, error) {
	if c.Out == "" {
		c.Out = resultDir("ab-")
	}
	if err := report.Claim(c.Out, c.Force); err != nil {
		return trial.Result{}, err
	}
	if c.Seed == 0 {
		c.Seed = newSeed()
	}
	result, _, err := session{
		brokers: c.brokerFlags, suite: "ab", out: c.Out, seed: c.Seed, width: 1, // a pair must not run beside another
		what: fmt.Sprintf("%d pairs of %s and %s", c.Pairs, c.A, c.B),
	}.measure(e, specs)
	if errors.Is(err, context.Canceled) {
		fmt.Fprintf(e.stderr, "queuelab: interrupted: %d of %d cells are finished and kept in %s\n", len(result.Cells), len(specs), c.Out)
		return result, exitError(130)
	}
	return result, err
}
