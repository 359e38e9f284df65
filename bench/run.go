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
	"queuelab/bench/report"
	"queuelab/bench/trial"
)

type runCmd struct {
	Backends string `default:"all" help:"Backends or backend/setting names, separated by commas."`
	Suite    string `default:"quick" enum:"smoke,quick,full" help:"smoke: the memory queue alone, needs nothing but Go. quick: every setting and fault once. full: with the repeats that a claim needs."`
	Trials   int    `default:"0" help:"Trials of every cell; 0: as the suite has it."`
	Tests    string `default:"all" help:"latency, throughput, crash, sale, separated by commas."`
	Out      string `placeholder:"DIR" help:"Where the result goes; default bench/results/TIME."`
	Resume   bool   `help:"Go on with the run in --out: keep its finished cells."`
	Force    bool   `help:"Replace the result in --out."`
	Seed     uint64 `default:"0" help:"Seed of the order and of the buyers; 0: by chance. It is in the result."`
	Width    int    `default:"3" help:"Crash and sale cells at once. Latency and throughput always run alone."`

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
	return nil
}

func (c *runCmd) Run(e *env) error {
	specs, err := c.specs()
	if err != nil {
		return usage(e, err)
	}
	if err := trial.CheckMutant(c.Mutant); err != nil {
		return usage(e, err)
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64()>>11 | 1 // a JSON number keeps 53 bits
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
	if c.Resume {
		if result, err = report.Read(c.Out); err != nil {
			return err
		}
		if err := c.resumable(result.Run, facts); err != nil {
			return err
		}
		specs = slices.DeleteFunc(specs, func(s trial.Spec) bool {
			return slices.ContainsFunc(result.Cells, func(cell trial.Cell) bool {
				return sameCell(cell, s) && finished(cell) && (cell.Trials == s.Trials || cell.Verdict == trial.VerdictNotApplicable)
			})
		})
		// What is measured again replaces what was there.
		result.Cells = slices.DeleteFunc(result.Cells, func(cell trial.Cell) bool {
			return slices.ContainsFunc(specs, func(s trial.Spec) bool { return sameCell(cell, s) })
		})
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

	progress := trial.NewProgress(e.stderr, e.terminal, specs)
	progress.Say("queuelab: %d cells, seed %d, results in %s", len(specs), c.Seed, c.Out)
	runner := &trial.Runner{
		Lab: lab, Suite: c.Suite, Seed: c.Seed, Width: c.Width, Progress: progress,
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
	result.Run.FinishedAt = time.Now()
	result.Run.Complete = err == nil
	trial.SortCells(result.Cells)
	if werr := report.Write(c.Out, result, report.Options{Force: true}); werr != nil {
		return werr
	}
	if terr := report.Table(e.stdout, result, e.color, width(e.stdout)); terr != nil {
		return terr
	}
	fmt.Fprintf(e.stdout, "\n%s: result.json, report.md and report.html, after %v\n", c.Out, time.Since(started).Round(time.Second))
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
	specs, err := trial.Suite(c.Suite, settings, c.Trials)
	if err != nil || c.Tests == "all" || c.Tests == "" {
		return specs, err
	}
	want := strings.Split(c.Tests, ",")
	for _, t := range want {
		if trial.TestHelp()[t] == "" {
			return nil, fmt.Errorf("--tests: unknown test %q: the tests are latency, throughput, crash, sale", t)
		}
	}
	return slices.DeleteFunc(specs, func(s trial.Spec) bool { return !slices.Contains(want, s.Test) }), nil
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
