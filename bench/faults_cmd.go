package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"queuelab/bench/node"
	"queuelab/bench/report"
	"queuelab/bench/trial"
)

type faultsCmd struct {
	Run    faultsRunCmd    `cmd:"" help:"Strike settings with faults, and compare what is lost with what the oracle expects."`
	List   faultsListCmd   `cmd:"" help:"List the faults, and what the default campaign asks of each."`
	Replay faultsReplayCmd `cmd:"" help:"Run one trial of a campaign again, with its seed and its moment."`
}

type faultsRunCmd struct {
	Settings string `placeholder:"LIST" help:"Backends or backend/setting names, separated by commas; default: those of the campaign."`
	Faults   string `placeholder:"LIST" help:"Faults, separated by commas; default: those of the campaign."`
	Crashes  int    `default:"10" help:"Trials of a cell whose outcome chance decides: 10 screen it, 30 confirm it. Where a named place makes it certain, and for the control, at most 3."`
	All      bool   `help:"Every fault on every setting: hours."`
	DryRun   bool   `help:"Print the cells and how long they take, and measure nothing."`
	Out      string `placeholder:"DIR" help:"Where the result goes; default bench/results/faults-TIME."`
	Resume   bool   `help:"Go on with the campaign in --out: keep its finished trials."`
	Force    bool   `help:"Replace the result in --out."`
	Seed     uint64 `default:"0" help:"Seed of the order and of the moments; 0: by chance. It is in the result."`
	Width    int    `default:"3" help:"Trials at once. Those that take timings or starve the machine run alone."`
	JSON     bool   `name:"json" help:"Write events to standard output, one JSON object a line, and no table."`

	brokerFlags

	Mutant string `hidden:"" help:"Spoil every consumer on purpose, to see the harness say so."`
}

func (faultsRunCmd) Help() string {
	return `The default campaign asks the questions that people come with, on the settings
that answer them. With --settings or --faults every chosen fault meets every
chosen setting.

Examples:
  queuelab faults run
  queuelab faults run --dry-run
  queuelab faults run --faults power-loss --settings redis-list,redis-streams
  queuelab faults run --settings kafka/acks-all --crashes 30
  queuelab faults run --all --out results/night
  queuelab faults run --all --out results/night --resume

Exit status: 3 when a cell contradicts the oracle or is invalid.`
}

func (c *faultsRunCmd) Validate() error {
	if c.Crashes < 1 || c.Crashes > 1000 {
		return fmt.Errorf("--crashes=%d: want 1 to 1000", c.Crashes)
	}
	if c.Width < 1 || c.Width > 16 {
		return fmt.Errorf("--width=%d: want 1 to 16", c.Width)
	}
	if c.Resume && c.Out == "" {
		return errors.New("--resume needs --out, the directory of the campaign to go on with")
	}
	return nil
}

func (c *faultsRunCmd) Run(e *env) error {
	specs, err := trial.Campaign(c.Settings, c.Faults, c.Crashes, c.All)
	if err != nil {
		return usage(e, err)
	}
	if err := node.CheckMutant(c.Mutant); err != nil {
		return usage(e, err)
	}
	specs = distinct(specs)
	if c.DryRun {
		for _, s := range specs {
			name := s.Fault
			if s.Test != trial.TestFault {
				name = "(" + s.Test + ")"
			}
			fmt.Fprintf(e.stdout, "%-28s %-30s %d\n", name, s.Setting, s.Trials)
		}
		fmt.Fprintln(e.stdout, plan(specs, c.Width))
		return nil
	}
	if c.Out == "" {
		c.Out = resultDir("faults-")
	}
	release, err := claim(c.Out, c.Force, c.Resume)
	if err != nil {
		return err
	}
	defer release()
	m := session{brokers: c.brokerFlags, suite: trial.SuiteFaults, out: c.Out, seed: c.Seed, width: c.Width, mutant: c.Mutant, events: c.JSON}
	if c.Resume {
		if specs, err = m.resume(e, specs); err != nil {
			return err
		}
	}
	m.what = plan(specs, c.Width)
	if m.seed == 0 {
		m.seed = newSeed()
	}
	started := time.Now()
	result, progress, err := m.measure(e, specs)
	if err != nil && (progress == nil || !errors.Is(err, context.Canceled)) {
		return err
	}
	if c.JSON {
		progress.End(c.Out)
	} else if terr := report.Table(e.stdout, result, e.color, width(e.stdout)); terr != nil {
		return terr
	}
	fmt.Fprintf(e.out(c.JSON), "\n%s: result.json, report.md, report.html and the ledgers of %s, after %v\n", c.Out, ledgersOf(c.Out), time.Since(started).Round(time.Second))
	if err != nil {
		fmt.Fprintf(e.stderr, "queuelab: interrupted: what is finished is kept; go on with the same command and --out %s --resume\n", c.Out)
		return exitError(130)
	}
	return conclude(e, result.Cells)
}

// plan says in words what the specs take.
func plan(specs []trial.Spec, width int) string {
	trials := 0
	for _, s := range specs {
		trials += s.Trials
	}
	unit := time.Minute
	about := trial.Estimate(specs, width)
	if about < 10*unit {
		unit = 10 * time.Second
	}
	return fmt.Sprintf("%s, %s, about %v", counted(len(specs), "cell"), counted(trials, "trial"), about.Round(unit))
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// ledgersOf says of how many of the fault trials in its log dir has the ledger:
// one that failed before its end has none, and files can be deleted.
func ledgersOf(dir string) string {
	kept, err := trial.ReadLog(dir)
	if err != nil {
		return "its trials" // those that read it will say why they cannot
	}
	trials := map[string]bool{}
	there := 0
	for _, o := range kept {
		name := trial.TrialName(o.Backend, o.Setting, o.Fault, o.Run.N)
		if o.Test == trial.TestFault && !trials[name] {
			trials[name] = true
			if trial.HasEvidence(dir, name) {
				there++
			}
		}
	}
	all := counted(len(trials), "trial")
	if there < len(trials) {
		return fmt.Sprintf("%d of %s", there, all)
	}
	return all
}

type faultsListCmd struct{}

func (faultsListCmd) Help() string { return "Example:\n  queuelab faults list" }

func (faultsListCmd) Run(e *env) error {
	specs, err := trial.Campaign("", "", 10, false)
	if err != nil {
		return err
	}
	asked := map[string][]string{}
	for _, s := range specs {
		if s.Test == trial.TestFault {
			asked[s.Fault] = append(asked[s.Fault], s.Setting.String())
		}
	}
	for _, name := range trial.Faults() {
		if name == trial.FaultServiceKill { // the sale's, which is no campaign
			continue
		}
		fmt.Fprintf(e.stdout, "%-28s %s\n", name, trial.FaultHelp()[name])
		if len(asked[name]) > 0 {
			fmt.Fprintf(e.stdout, "%-28s in the campaign: %s\n", "", strings.Join(asked[name], ", "))
		}
	}
	return nil
}

type faultsReplayCmd struct {
	Dir   string `arg:"" help:"The result directory of a campaign."`
	Trial string `arg:"" help:"backend/setting:fault:number."`
	Out   string `placeholder:"DIR" help:"Where the result goes; default bench/results/replay-TIME."`
	brokerFlags
}

func (faultsReplayCmd) Help() string {
	return "The load, the seed and the moment of the fault are those of the trial; what chance\nelse decides on a machine is not.\n\nExample:\n  queuelab faults replay bench/results/faults-20261130-101500 redis-list/aof-everysec:power-loss:3"
}

func (c faultsReplayCmd) Run(e *env) error {
	setting, rest, _ := strings.Cut(c.Trial, ":")
	fault, number, ok := strings.Cut(rest, ":")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 1 {
		return usage(e, fmt.Errorf("trial %q: want backend/setting:fault:number, as in redis-list/aof-no:power-loss:1", c.Trial))
	}
	kept, err := trial.ReadLog(c.Dir)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(kept, func(o trial.Outcome) bool {
		return o.Test == trial.TestFault && trial.TrialName(o.Backend, o.Setting, o.Fault, o.Run.N) == c.Trial
	})
	if i < 0 {
		return fmt.Errorf("%s has no trial %q in its log; `queuelab report %s` shows its cells", filepath.Join(c.Dir, trial.LogFile), c.Trial, c.Dir)
	}
	was := kept[i].Run
	// The moment is one of as many as there were to be, which a campaign that
	// was resumed may have changed since. Logs before 2026-12 do not have it.
	trials := max(n, was.Of)
	if was.Of == 0 {
		result, err := report.Read(c.Dir)
		if err != nil {
			return err
		}
		for _, cell := range result.Cells {
			if cell.Backend+"/"+cell.Setting == setting && cell.Fault == fault && cell.Test == trial.TestFault {
				trials = max(n, cell.Trials)
			}
		}
	}
	specs, err := trial.Campaign(setting, fault, trials, false)
	if err != nil {
		return err
	}
	if c.Out == "" {
		c.Out = resultDir("replay-")
	}
	release, err := claim(c.Out, false, false)
	if err != nil {
		return err
	}
	defer release()
	m := session{brokers: c.brokerFlags, suite: trial.SuiteFaults, out: c.Out, seed: was.Seed - uint64(n) + 1, width: 1, what: "replay of " + c.Trial, only: n}
	result, _, err := m.measure(e, specs)
	if err != nil {
		return err
	}
	if err := report.Table(e.stdout, result, e.color, width(e.stdout)); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "\n%s: the result; its story: queuelab explain %s --in %s\n", c.Out, c.Trial, c.Out)
	return conclude(e, result.Cells)
}

type explainCmd struct {
	Trial   string `arg:"" help:"backend/setting:fault:number."`
	Message string `arg:"" optional:"" help:"A message id, as the list of what was lost has it; without one, the whole trial."`
	In      string `placeholder:"DIR" help:"The result directory; default: the newest campaign in bench/results."`
}

func (explainCmd) Help() string {
	return "Tells from the ledgers what became of a message: published, answered, delivered,\nstruck, and where it was lost.\n\nExamples:\n  queuelab explain redis-list/aof-no:power-loss:1\n  queuelab explain redis-list/aof-no:power-loss:1 12-1-0-37 --in bench/results/monday"
}

func (c explainCmd) Run(e *env) error {
	if c.In == "" {
		dirs, err := filepath.Glob(filepath.Join("bench", "results", "faults-*", trial.EvidenceDir))
		if err != nil {
			return err
		}
		if len(dirs) == 0 {
			return errors.New("there is no campaign in bench/results: run `queuelab faults run`, or give its directory with --in")
		}
		newest, at := "", time.Time{}
		for _, d := range dirs {
			if info, err := os.Stat(d); err == nil && info.ModTime().After(at) {
				newest, at = filepath.Dir(d), info.ModTime()
			}
		}
		c.In = newest
	}
	evidence, err := trial.ReadEvidence(c.In, c.Trial)
	if err != nil {
		return err
	}
	return trial.Explain(e.stdout, evidence, c.Message)
}
