package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"queuelab/bench/compare"
	"queuelab/bench/host"
	"queuelab/bench/host/meter"
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

	RedisURL    string `name:"redis" placeholder:"URL" help:"Use this Redis instead of starting one."`
	RabbitMQURL string `name:"rabbitmq" placeholder:"URL" help:"Use this RabbitMQ, likewise."`
	KafkaURL    string `name:"kafka" placeholder:"URL" sep:"none" help:"Use this Kafka, likewise."`
	PostgresURL string `name:"postgres" placeholder:"URL" help:"Use this PostgreSQL, likewise."`
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
	case c.Rate != 0 && !(c.Rate >= 1 && c.Rate <= 1_000_000):
		return fmt.Errorf("--rate=%v: want 1 to 1000000", c.Rate)
	case c.Duration != 0 && (c.Duration < time.Second || c.Duration > time.Hour):
		return fmt.Errorf("--duration=%v: want 1s to 1h", c.Duration)
	case c.Payload < 0 || c.Payload > 10<<20:
		return fmt.Errorf("--payload=%d: want 1 to %d", c.Payload, 10<<20)
	}
	return nil
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
	load := trial.LoadOverride{Rate: c.Rate, Duration: c.Duration, Payload: c.Payload}
	for i := range specs {
		s := &specs[i]
		s.Load = load.Apply(s.Load)
		if c.Duration > 0 {
			s.Load.Saturate = c.Duration
		}
		s.Trials = c.Pairs
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
func (c *abCmd) measure(e *env, specs []trial.Spec) (result trial.Result, err error) {
	started := time.Now()
	if c.Out == "" {
		c.Out = filepath.Join("bench", "results", "ab-"+started.Format("20060102-150405"))
	}
	if err := report.Claim(c.Out, c.Force); err != nil {
		return result, err
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64()>>11 | 1 // a JSON number keeps 53 bits
	}
	given := runCmd{RedisURL: c.RedisURL, RabbitMQURL: c.RabbitMQURL, KafkaURL: c.KafkaURL, PostgresURL: c.PostgresURL}
	seckill := ""
	if slices.ContainsFunc(specs, func(s trial.Spec) bool { return s.Test == trial.TestSale }) {
		path, cleanup, err := given.seckill(e)
		if err != nil {
			return result, err
		}
		defer cleanup()
		seckill = path
	}
	facts := host.Facts(e.ctx, os.TempDir())
	lab, err := trial.NewLab(given.external(), seckill)
	if err != nil {
		return result, err
	}
	defer lab.Close()
	if err := lab.CheckExternal(e.ctx, []trial.Setting{specs[0].Setting, specs[len(specs)-1].Setting}); err != nil {
		return result, err
	}
	log, err := trial.OpenLog(c.Out, true)
	if err != nil {
		return result, err
	}
	defer log.Close()
	lab.Stamps = filepath.Join(c.Out, trial.StampsDir)
	result = trial.Result{Schema: trial.Schema, Cells: []trial.Cell{}, Run: trial.Run{
		ID: started.UTC().Format("20060102T150405Z"), StartedAt: started, Commit: commit(), GoVersion: runtime.Version(),
		Suite: "ab", Args: redactArgs(os.Args[1:]), Host: facts,
	}}
	progress := trial.NewProgress(e.stderr, e.terminal, specs)
	progress.Say("queuelab: %d pairs of %s and %s, seed %d, results in %s", c.Pairs, c.A, c.B, c.Seed, c.Out)
	if result.Run.Floor, err = lab.Floor(e.ctx); err != nil && e.ctx.Err() == nil {
		return result, fmt.Errorf("measure what the harness itself adds: %w", err)
	}
	watch := meter.Start()
	runner := &trial.Runner{
		Lab: lab, Suite: "ab", Seed: c.Seed, Width: 1, Progress: progress, Trial: log.Append, // a pair must not run beside another
		Finished: func(cell trial.Cell) error {
			result.Cells = append(result.Cells, cell)
			return report.Write(c.Out, result, report.Options{Force: true}) // so that an interrupted run keeps what is finished
		},
	}
	err = runner.Run(e.ctx, specs)
	progress.Close()
	if cerr := lab.Close(); cerr != nil {
		fmt.Fprintln(e.stderr, "queuelab:", cerr)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return result, err
	}
	result.Run.Host = host.Watched(result.Run.Host, watch.Stop())
	result.Run.FinishedAt = time.Now()
	result.Run.Complete = err == nil
	trial.SortCells(result.Cells)
	if werr := report.Write(c.Out, result, report.Options{Force: true}); werr != nil {
		return result, werr
	}
	if err != nil {
		fmt.Fprintf(e.stderr, "queuelab: interrupted: %d of %d cells are finished and kept in %s\n", len(result.Cells), len(specs), c.Out)
		return result, exitError(130)
	}
	return result, nil
}
