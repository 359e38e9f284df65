package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"queuelab/bench/host"
	"queuelab/bench/host/meter"
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

	RedisURL    string `name:"redis" placeholder:"URL" help:"Use this Redis instead of starting one; it cannot be killed, and is not."`
	RabbitMQURL string `name:"rabbitmq" placeholder:"URL" help:"Use this RabbitMQ, likewise."`
	KafkaURL    string `name:"kafka" placeholder:"URL" sep:"none" help:"Use this Kafka, likewise."`
	PostgresURL string `name:"postgres" placeholder:"URL" help:"Use this PostgreSQL for effects and orders."`
	Mutant      string `hidden:"" help:"Spoil every consumer on purpose, to see the harness say so."`
	Seckill     string `placeholder:"FILE" help:"The service's program; default: beside this one, else built from ./app."`
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
	return c.checkLoad()
}

// checkLoad says which number of the load is beyond reason.
func (c *runCmd) checkLoad() error {
	for _, x := range []struct {
		flag         string
		value, least float64
		most         float64
	}{
		{"rate", c.Rate, 1, 1_000_000},
		{"payload", float64(c.Payload), 1, 10 << 20},
		{"duration in seconds", c.Duration.Seconds(), 1, 3600},
	} {
		if x.value != 0 && !(x.value >= x.least && x.value <= x.most) {
			return fmt.Errorf("--%s: got %v, want %v to %v, or none for what the suite has", x.flag, x.value, x.least, x.most)
		}
	}
	for _, x := range []struct {
		flag  string
		value int
	}{{"producers", c.Producers}, {"consumers", c.Consumers}} {
		if x.value < 1 || x.value > 64 {
			return fmt.Errorf("--%s=%d: want 1 to 64", x.flag, x.value)
		}
	}
	if c.SLO != "" {
		if _, err := trial.ParsePromise(c.SLO); err != nil {
			return fmt.Errorf("--slo: %w", err)
		}
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
	if err := trial.CheckMutant(c.Mutant); err != nil {
		return usage(e, err)
	}
	started := time.Now()
	if c.Out == "" {
		c.Out = filepath.Join("bench", "results", started.Format("20060102-150405"))
	}
	if err := report.Claim(c.Out, c.Force || c.Resume); err != nil {
		return err
	}
	facts := host.Facts(e.ctx, os.TempDir())
	result := trial.Result{Schema: trial.Schema, Cells: []trial.Cell{}}
	var kept []trial.Outcome
	if c.Resume {
		if kept, err = trial.ReadLog(c.Out); err != nil {
			return err
		}
		if result, err = report.Read(c.Out); err != nil {
			return err
		}
		if err := c.resumable(result.Run, facts); err != nil {
			return err
		}
		specs = slices.DeleteFunc(specs, func(s trial.Spec) bool {
			return slices.ContainsFunc(result.Cells, func(cell trial.Cell) bool {
				return sameCell(cell, s) && finished(cell) && (cell.Trials == s.Trials && s.SameLoad(cell) || cell.Verdict == trial.VerdictNotApplicable)
			})
		})
		// What is measured again replaces what was there.
		result.Cells = slices.DeleteFunc(result.Cells, func(cell trial.Cell) bool {
			return slices.ContainsFunc(specs, func(s trial.Spec) bool { return sameCell(cell, s) })
		})
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64()>>11 | 1 // a JSON number keeps 53 bits
		if len(kept) > 0 {             // the order goes on as it was drawn
			c.Seed = kept[0].Run.Seed - uint64(kept[0].Run.N) + 1
		}
	}
	seckill, cleanup := "", func() {}
	if slices.ContainsFunc(specs, func(s trial.Spec) bool { return s.Test == trial.TestSale }) {
		if seckill, cleanup, err = c.seckill(e); err != nil {
			return err
		}
	}
	defer cleanup()

	run := trial.Run{
		ID: started.UTC().Format("20060102T150405Z"), StartedAt: started, Commit: commit(), GoVersion: runtime.Version(),
		Suite: c.Suite, Args: redactArgs(os.Args[1:]), Host: facts,
	}
	if c.Resume { // its first cells were measured then, under that load
		run.ID, run.StartedAt, run.Host = result.Run.ID, result.Run.StartedAt, result.Run.Host
	}
	result.Run = run
	lab, err := trial.NewLab(c.external(), seckill)
	if err != nil {
		return err
	}
	defer lab.Close()
	lab.Mutant = c.Mutant
	if err := lab.CheckExternal(e.ctx, c.settingsOf(specs)); err != nil {
		return err
	}

	log, err := trial.OpenLog(c.Out, !c.Resume)
	if err != nil {
		return err
	}
	defer log.Close()
	lab.Stamps = filepath.Join(c.Out, trial.StampsDir)
	progress := trial.NewProgress(e.stderr, e.terminal, specs)
	if c.JSON {
		progress = trial.NewEvents(e.stdout, specs)
	}
	progress.Say("queuelab: %d cells, seed %d, results in %s", len(specs), c.Seed, c.Out)
	if result.Run.Floor, err = lab.Floor(e.ctx); err != nil && e.ctx.Err() == nil {
		return fmt.Errorf("measure what the harness itself adds: %w", err)
	}
	watch := meter.Start()
	runner := &trial.Runner{
		Lab: lab, Suite: c.Suite, Seed: c.Seed, Width: c.Width, Progress: progress, Kept: kept, Trial: log.Append,
		Finished: func(cell trial.Cell) error {
			result.Cells = append(result.Cells, cell)
			return report.Write(c.Out, result, report.Options{Force: true}) // so that an interrupted run keeps what is finished
		},
	}
	err = runner.Run(e.ctx, specs)
	progress.Close()
	// Before anything is printed: a reader that went away ends this process.
	if cerr := lab.Close(); cerr != nil {
		fmt.Fprintln(e.stderr, "queuelab:", cerr)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	result.Run.Host = host.Watched(result.Run.Host, watch.Stop())
	result.Run.FinishedAt = time.Now()
	result.Run.Complete = err == nil
	trial.SortCells(result.Cells)
	if werr := report.Write(c.Out, result, report.Options{Force: true}); werr != nil {
		return werr
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
	return c.conclude(e, result.Cells)
}

// conclude says what is wrong, each thing once, and chooses the exit status.
func (c *runCmd) conclude(e *env, cells []trial.Cell) (err error) {
	said := map[string]bool{}
	skipped, measured := "", len(cells) == 0
	for _, cell := range cells {
		switch cell.Verdict {
		case trial.VerdictContradiction, trial.VerdictInvalid:
			if !said[cell.Note] {
				fmt.Fprintf(e.stderr, "queuelab: %s/%s %s %s: %s: %s\n", cell.Backend, cell.Setting, cell.Test, cell.Fault, cell.Verdict, cell.Note)
			}
			said[cell.Note] = true
			err = exitError(3)
		case trial.VerdictSkipped:
			skipped = cell.Note
		}
		measured = measured || cell.Verdict != trial.VerdictSkipped && cell.Verdict != trial.VerdictNotApplicable
	}
	if !measured && skipped != "" {
		return fmt.Errorf("nothing was measured: %s", skipped)
	}
	return err
}

// resumable says why the finished cells of a run cannot stand beside those that
// this command would add: one table must hold one load, one program and one
// machine.
func (c *runCmd) resumable(was trial.Run, here trial.Host) error {
	for _, x := range []struct{ what, was, is string }{
		{"suite", was.Suite, c.Suite},
		{"commit", was.Commit, commit()},
		{"processor", was.Host.CPU, here.CPU},
		{"number of cores", fmt.Sprint(was.Host.Cores), fmt.Sprint(here.Cores)},
	} {
		if x.was != x.is {
			return fmt.Errorf("%s cannot be resumed: its %s was %q and is now %q: start anew with another --out, or with --force", c.Out, x.what, x.was, x.is)
		}
	}
	return nil
}

func sameCell(cell trial.Cell, s trial.Spec) bool {
	return cell.Backend == s.Setting.Backend && cell.Setting == s.Setting.Name && cell.Test == s.Test && cell.Fault == s.Fault
}

func finished(cell trial.Cell) bool {
	return cell.Verdict != trial.VerdictInvalid && cell.Verdict != trial.VerdictSkipped
}

// settingsOf are the settings that the suite measures.
func (c *runCmd) settingsOf(specs []trial.Spec) []trial.Setting {
	var settings []trial.Setting
	for _, s := range specs {
		if ok, _ := s.Runs(c.Suite); ok {
			settings = append(settings, s.Setting)
		}
	}
	return settings
}

func (c *runCmd) specs() ([]trial.Spec, error) {
	settings, err := trial.SelectSettings(c.Backends)
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

func (c *runCmd) external() map[string]string {
	m := map[string]string{"redis": c.RedisURL, "rabbitmq": c.RabbitMQURL, "kafka": c.KafkaURL, "postgres": c.PostgresURL}
	for k, v := range m {
		if v == "" {
			delete(m, k)
		}
	}
	return m
}

// seckill finds the service's program, or builds it.
func (c *runCmd) seckill(e *env) (path string, cleanup func(), err error) {
	none := func() {}
	if c.Seckill != "" {
		if _, err := exec.LookPath(c.Seckill); err != nil {
			return "", none, fmt.Errorf("--seckill: %w", err)
		}
		return c.Seckill, none, nil
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
