package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"queuelab/bench/node"
	"queuelab/bench/report"
	"queuelab/bench/trial"
)

type runCmd struct {
	Backends string `default:"all" help:"Backends or backend/setting names, separated by commas."`
	Suite    string `default:"quick" enum:"smoke,quick,full" help:"smoke: the memory queue alone, needs nothing but Go. quick: every setting and fault once. full: with the repeats that a claim needs."`
	Trials   int    `default:"0" help:"Trials of every cell; 0: as the suite has it."`
	Tests    string `default:"all" help:"latency, throughput, crash, sale, slo, scaling-consumers, scaling-connections, scaling-payload, scaling-batch, separated by commas; scaling is all four. The long ones, slo and scaling, are in full alone unless named."`
	Out      string `placeholder:"DIR" help:"Where the result goes; default bench/results/TIME."`
	Resume   bool   `help:"Go on with the run in --out: keep its finished cells."`
	Force    bool   `help:"Replace the result in --out."`
	Seed     uint64 `default:"0" help:"Seed of the order and of the buyers; 0: by chance. It is in the result."`
	Width    int    `default:"3" help:"Crash and sale cells at once. Latency and throughput always run alone."`
	JSON     bool   `name:"json" help:"Write events to standard output, one JSON object a line, and no table."`

	SLO       string        `name:"slo" placeholder:"PROMISE" help:"Search for the highest rate that keeps it, as in 'p99<20ms,lost=0'; measures nothing else unless --tests says so."`
	Rate      float64       `default:"0" help:"Latency: messages a second; 0: as the suite has it."`
	Shape     string        `placeholder:"SHAPE" sep:"none" help:"Latency: when they come, as in poisson:1000, ramp:100-2000/30s, step:500/10s,1000/10s,2000 or spike:silence=2s,wall=5000/200ms,tail=100; default constant at --rate."`
	Duration  time.Duration `default:"0" help:"Latency: how long, after a second of warm-up."`
	Payload   int           `default:"0" help:"Bytes of a message; 0: as the suite has it."`
	Content   string        `default:"text" help:"What they are: zeros, text, random or json."`
	Keys      string        `default:"uniform:16" sep:"none" help:"Which keys messages have: none, uniform:N, or hot:N,SHARE."`
	Producers int           `default:"1" help:"Latency and throughput: publishers."`
	Consumers int           `default:"1" help:"Latency and throughput: consumers."`

	brokerFlags

	Mutant  string `hidden:"" help:"Spoil every consumer on purpose, to see the harness say so."`
	Seckill string `placeholder:"FILE" help:"The service's program; default: beside this one, else built from ./app."`
}

func (runCmd) Help() string {
	return `Examples:
  queuelab run --suite smoke
  queuelab run --suite quick --backends redis-streams,kafka/acks-all
  queuelab run --suite full --out results/monday
  queuelab run --slo 'p99<20ms,lost=0' --backends redis-streams
  queuelab run --tests latency --shape spike:silence=2s,wall=5000/200ms,tail=100
  queuelab run --tests scaling --backends kafka,rabbitmq/quorum --trials 3
  queuelab run --suite full --out results/monday --resume

Ctrl-C keeps what is finished; --resume goes on from there.`
}

func (c *runCmd) Validate() error {
	if c.Trials < 0 || c.Trials > 1000 {
		return fmt.Errorf("--trials=%d: want 0 to 1000", c.Trials)
	}
	if c.Width < 1 || c.Width > 16 {
		return fmt.Errorf("--width=%d: want 1 to 16", c.Width)
	}
	if c.Resume && c.Out == "" {
		return errors.New("--resume needs --out, the directory of the run to go on with")
	}
	return c.load().Check()
}

// load is what of the suite's load the command line replaces.
func (c *runCmd) load() trial.LoadOverride {
	return trial.LoadOverride{
		Rate: c.Rate, Shape: c.Shape, Duration: c.Duration, Payload: c.Payload, Content: c.Content, Keys: c.Keys,
		Producers: c.Producers, Consumers: c.Consumers, Promise: c.SLO,
	}
}

func (c *runCmd) Run(e *env) error {
	specs, err := c.specs()
	if err != nil {
		return usage(e, err)
	}
	if err := node.CheckMutant(c.Mutant); err != nil {
		return usage(e, err)
	}
	started := time.Now()
	if c.Out == "" {
		c.Out = resultDir("")
	}
	release, err := claim(c.Out, c.Force, c.Resume)
	if err != nil {
		return err
	}
	defer release()
	m := session{
		brokers: c.brokerFlags, seckill: c.Seckill, suite: c.Suite, out: c.Out, seed: c.Seed, width: c.Width, mutant: c.Mutant, events: c.JSON,
	}
	if c.Resume {
		if specs, err = m.resume(e, specs); err != nil {
			return err
		}
	}
	if m.seed == 0 {
		m.seed = newSeed()
	}
	m.what = fmt.Sprintf("%d cells", len(specs))
	result, progress, err := m.measure(e, specs)
	if err != nil && (progress == nil || !errors.Is(err, context.Canceled)) {
		return err
	}
	if c.JSON {
		progress.End(c.Out)
	} else if terr := report.Table(e.stdout, result, e.color, width(e.stdout)); terr != nil {
		return terr
	}
	fmt.Fprintf(e.out(c.JSON), "\n%s: result.json, report.md and report.html, after %v\n", c.Out, time.Since(started).Round(time.Second))
	if err != nil {
		fmt.Fprintf(e.stderr, "queuelab: interrupted: %d of %d cells are finished and kept; go on with --out %s --resume\n", len(result.Cells), len(result.Cells)+len(specs)-progress.Finished(), c.Out)
		return exitError(130)
	}
	return conclude(e, result.Cells)
}

func (c *runCmd) specs() ([]trial.Spec, error) {
	settings, err := trial.SelectCore(c.Backends)
	if err != nil {
		return nil, err
	}
	tests, err := c.tests()
	if err != nil {
		return nil, err
	}
	specs, err := trial.Suite(c.Suite, settings, c.Trials, tests...)
	if err != nil {
		return nil, err
	}
	for i := range specs {
		specs[i].Load = c.load().Apply(specs[i].Load)
	}
	return specs, nil
}

// tests are those that were asked for by name; none: all of the suite's.
func (c *runCmd) tests() ([]string, error) {
	var want []string
	for t := range strings.SplitSeq(c.Tests, ",") {
		switch t = strings.TrimSpace(t); {
		case t == "all" || t == "":
			if c.SLO != "" {
				return []string{trial.TestSLO}, nil
			}
			return nil, nil
		case t == "scaling":
			want = append(want, trial.ScalingTests()...)
		case trial.TestHelp()[t] == "":
			return nil, fmt.Errorf("--tests: unknown test %q: the tests are %s, and scaling for all of those", t, strings.Join(trial.Tests(), ", "))
		default:
			want = append(want, t)
		}
	}
	if c.SLO != "" && !slices.Contains(want, trial.TestSLO) {
		return nil, fmt.Errorf("--slo is the promise of the test slo, which --tests=%s leaves out", c.Tests)
	}
	return want, nil
}

// service finds the service's program, or builds it.
func (s session) service(e *env) (path string, cleanup func(), err error) {
	none := func() {}
	if s.seckill != "" {
		if _, err := exec.LookPath(s.seckill); err != nil {
			return "", none, fmt.Errorf("--seckill: %w", err)
		}
		return s.seckill, none, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "seckill")
		if _, err := os.Stat(beside); err == nil {
			return beside, none, nil
		}
	}
	fmt.Fprintln(e.stderr, "queuelab: building the service, which takes a minute the first time")
	dir, err := os.MkdirTemp("", fmt.Sprintf("queuelab-%d-build-", os.Getpid())) // a later run removes what a killed one left
	if err != nil {
		return "", none, fmt.Errorf("build the service: %w", err)
	}
	cleanup = func() { os.RemoveAll(dir) }
	path = filepath.Join(dir, "seckill")
	build := exec.CommandContext(e.ctx, "go", "build", "-o", path, "queuelab/app")
	if msg, err := build.CombinedOutput(); err != nil {
		cleanup()
		return "", none, fmt.Errorf("build the service: %w: %s; give its program with --seckill", err, strings.TrimSpace(string(msg)))
	}
	return path, cleanup, nil
}

// redactArgs hides the passwords of URLs among the arguments.
func redactArgs(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		name, raw, has := strings.Cut(a, "=")
		if !has {
			name, raw = "", a
		}
		if u, err := url.Parse(raw); err == nil && u.User != nil {
			a = u.Redacted()
			if has {
				a = name + "=" + a
			}
		}
		out[i] = a
	}
	return out
}

// gitCommit asks git, for `go run`, which does not stamp the revision.
func gitCommit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
