package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"queuelab/bench/host"
	"queuelab/bench/host/meter"
	"queuelab/bench/report"
	"queuelab/bench/trial"
)

// session measures specs into a result's directory.
type session struct {
	brokers brokerFlags
	seckill string // the service's program; "" is the one beside this one, or built
	suite   string
	out     string
	seed    uint64
	width   int
	mutant  string
	resumed *trial.Result   // what an earlier session had finished; nil: begin anew
	kept    []trial.Outcome // its trials
	events  bool            // to standard output
	what    string          // in words, for the first line
	only    int             // the number of the only trial of each cell; 0: all
	facts   *trial.Host     // where they are known already
}

// newSeed draws one that a JSON number holds.
func newSeed() uint64 { return rand.Uint64()>>11 | 1 }

// resultDir is where a result goes that was not told.
func resultDir(prefix string) string {
	return filepath.Join("bench", "results", prefix+time.Now().Format("20060102-150405"))
}

// claim makes dir ready for a result, and keeps every other queuelab out of it
// until release is called or this process ends: two results in one directory
// would share a log and overwrite each other's ledgers. It is an error where
// there is a result and replace is not set, or none and resume is.
func claim(dir string, replace, resume bool) (release func(), err error) {
	if resume {
		if _, err := os.Stat(filepath.Join(dir, report.ResultFile)); err != nil {
			return nil, fmt.Errorf("there is nothing to resume in %s: %w", dir, err)
		}
	}
	if err := report.Claim(dir, true); err != nil {
		return nil, err
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open the result directory: %w", err)
	}
	// A file system without locks is no reason not to measure.
	if errors.Is(unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
		d.Close()
		return nil, fmt.Errorf("another queuelab measures into %s: wait until it has ended, or choose another directory with --out", dir)
	}
	if err := report.Claim(dir, replace || resume); err != nil {
		d.Close()
		return nil, err
	}
	return func() { d.Close() }, nil
}

// distinct drops the specs that a list names twice, as backend and as setting:
// both would be one cell, and keep their ledgers under one name.
func distinct(specs []trial.Spec) []trial.Spec {
	seen := map[string]bool{}
	return slices.DeleteFunc(specs, func(s trial.Spec) bool {
		name := fmt.Sprintf("%s %s %s", s.Setting, s.Test, s.Fault)
		twice := seen[name]
		seen[name] = true
		return twice
	})
}

// measure runs the specs, and writes the result after every cell. It returns
// what is finished, also with the error context.Canceled of a run that was
// interrupted.
func (s session) measure(e *env, specs []trial.Spec) (result trial.Result, progress *trial.Progress, err error) {
	started := time.Now()
	specs = distinct(specs)
	if s.facts == nil {
		facts := host.Facts(e.ctx, os.TempDir())
		s.facts = &facts
	}
	program := ""
	if slices.ContainsFunc(specs, func(x trial.Spec) bool { return x.Test == trial.TestSale }) {
		path, cleanup, err := s.service(e)
		if err != nil {
			return result, nil, err
		}
		defer cleanup()
		program = path
	}
	result = trial.Result{Schema: trial.Schema, Cells: []trial.Cell{}}
	run := trial.Run{
		ID: started.UTC().Format("20060102T150405Z"), StartedAt: started, Commit: commit(), GoVersion: runtime.Version(),
		Suite: s.suite, Args: redactArgs(os.Args[1:]), Host: *s.facts,
	}
	if s.resumed != nil { // its first cells were measured then, under that load
		result = *s.resumed
		run.ID, run.StartedAt, run.Host = result.Run.ID, result.Run.StartedAt, result.Run.Host
	}
	result.Run = run
	lab, err := trial.NewLab(s.brokers.external(), program)
	if err != nil {
		return result, nil, err
	}
	defer lab.Close()
	lab.Mutant, lab.Stamps, lab.Evidence = s.mutant, filepath.Join(s.out, trial.StampsDir), filepath.Join(s.out, trial.EvidenceDir)
	if err := lab.CheckExternal(e.ctx, settingsOf(specs, s.suite)); err != nil {
		return result, nil, err
	}
	log, err := trial.OpenLog(s.out, s.resumed == nil)
	if err != nil {
		return result, nil, err
	}
	defer log.Close()
	if s.resumed == nil { // those of a result that was replaced
		if err := removeOurs(lab.Stamps, lab.Evidence); err != nil {
			return result, nil, fmt.Errorf("remove what the result before had: %w", err)
		}
	}
	// At once, so that a run that is killed before its first cell is finished
	// can be resumed too, and is not overwritten by mistake.
	if err := report.Write(s.out, result, report.Options{Force: true}); err != nil {
		return result, nil, err
	}
	if s.events {
		progress = trial.NewEvents(e.stdout, specs)
	} else {
		progress = trial.NewProgress(e.stderr, e.terminal, specs)
	}
	progress.Say("queuelab: %s, seed %d, results in %s", s.what, s.seed, s.out)
	if result.Run.Floor, err = lab.Floor(e.ctx); err != nil && e.ctx.Err() == nil {
		progress.Close()
		return result, progress, fmt.Errorf("measure what the harness itself adds: %w", err)
	}
	watch := meter.Start()
	runner := &trial.Runner{
		Lab: lab, Suite: s.suite, Seed: s.seed, Width: s.width, Progress: progress, Kept: s.kept, Only: s.only, Trial: log.Append,
		Finished: func(cell trial.Cell) error {
			result.Cells = append(result.Cells, cell)
			return report.Write(s.out, result, report.Options{Force: true}) // so that an interrupted run keeps what is finished
		},
	}
	err = runner.Run(e.ctx, specs)
	seen := watch.Stop()
	progress.Close()
	// Before anything is printed: a reader that went away ends this process.
	if cerr := lab.Close(); cerr != nil {
		fmt.Fprintln(e.stderr, "queuelab:", cerr)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return result, progress, err
	}
	result.Run.Host = host.Watched(result.Run.Host, seen)
	result.Run.FinishedAt = time.Now()
	result.Run.Complete = err == nil
	trial.SortCells(result.Cells)
	if werr := report.Write(s.out, result, report.Options{Force: true}); werr != nil {
		return result, progress, werr
	}
	return result, progress, err
}

// removeOurs empties the directories beside a result of what queuelab writes
// there. They have common names, and may be somebody else's.
func removeOurs(dirs ...string) error {
	for _, dir := range dirs {
		files, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, f := range files {
			if !strings.HasSuffix(f.Name(), ".csv.gz") && !strings.HasSuffix(f.Name(), ".jsonl.gz") {
				continue
			}
			if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
				return err
			}
		}
		_ = os.Remove(dir) // where nothing else is in it
	}
	return nil
}

// settingsOf are the settings that the suite measures.
func settingsOf(specs []trial.Spec, suite string) []trial.Setting {
	var settings []trial.Setting
	for _, s := range specs {
		if ok, _ := s.Runs(suite); ok {
			settings = append(settings, s.Setting)
		}
	}
	return settings
}

// resume takes over what an earlier run had finished, and returns what is left.
func (s *session) resume(e *env, specs []trial.Spec) ([]trial.Spec, error) {
	facts := host.Facts(e.ctx, os.TempDir())
	s.facts = &facts
	var err error
	if s.kept, err = trial.ReadLog(s.out); err != nil {
		return nil, err
	}
	result, err := report.Read(s.out)
	if err != nil {
		return nil, err
	}
	if err := s.resumable(result.Run, facts); err != nil {
		return nil, err
	}
	specs = slices.DeleteFunc(specs, func(x trial.Spec) bool {
		return slices.ContainsFunc(result.Cells, x.Finished)
	})
	// What is measured again replaces what was there.
	result.Cells = slices.DeleteFunc(result.Cells, func(cell trial.Cell) bool {
		return slices.ContainsFunc(specs, func(x trial.Spec) bool { return x.Of(cell) })
	})
	s.resumed = &result
	if s.seed == 0 && len(s.kept) > 0 { // the order goes on as it was drawn
		s.seed = s.kept[0].Run.Seed - uint64(s.kept[0].Run.N) + 1
	}
	return specs, nil
}

// resumable says why the finished cells of a run cannot stand beside those that
// this command would add: one table must hold one load, one program and one
// machine.
func (s *session) resumable(was trial.Run, here trial.Host) error {
	for _, x := range []struct{ what, was, is string }{
		{"suite", was.Suite, s.suite},
		{"commit", was.Commit, commit()},
		{"processor", was.Host.CPU, here.CPU},
		{"number of cores", fmt.Sprint(was.Host.Cores), fmt.Sprint(here.Cores)},
	} {
		if x.was != x.is {
			return fmt.Errorf("%s cannot be resumed: its %s was %q and is now %q: start anew with another --out, or with --force", s.out, x.what, x.was, x.is)
		}
	}
	return nil
}

// conclude says what is wrong, each thing once, and chooses the exit status.
func conclude(e *env, cells []trial.Cell) (err error) {
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
