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
	"time"

	"queuelab/bench/host"
	"queuelab/bench/host/meter"
	"queuelab/bench/report"
	"queuelab/bench/trial"
)

// brokerFlags let a user bring brokers along.
type brokerFlags struct {
	RedisURL    string `name:"redis" placeholder:"URL" help:"Use this Redis instead of starting one; it cannot be killed, and is not."`
	RabbitMQURL string `name:"rabbitmq" placeholder:"URL" help:"Use this RabbitMQ, likewise."`
	KafkaURL    string `name:"kafka" placeholder:"URL" sep:"none" help:"Use this Kafka, likewise."`
	PostgresURL string `name:"postgres" placeholder:"URL" help:"Use this PostgreSQL for effects and orders."`
}

func (f brokerFlags) external() map[string]string {
	m := map[string]string{"redis": f.RedisURL, "rabbitmq": f.RabbitMQURL, "kafka": f.KafkaURL, "postgres": f.PostgresURL}
	for k, v := range m {
		if v == "" {
			delete(m, k)
		}
	}
	return m
}

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
	facts   *trial.Host     // where they are known already
}

// newSeed draws one that a JSON number holds.
func newSeed() uint64 { return rand.Uint64()>>11 | 1 }

// resultDir is where a result goes that was not told.
func resultDir(prefix string) string {
	return filepath.Join("bench", "results", prefix+time.Now().Format("20060102-150405"))
}

// measure runs the specs, and writes the result after every cell. It returns
// what is finished, also with the error context.Canceled of a run that was
// interrupted.
func (s session) measure(e *env, specs []trial.Spec) (result trial.Result, progress *trial.Progress, err error) {
	started := time.Now()
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
	lab.Mutant, lab.Stamps = s.mutant, filepath.Join(s.out, trial.StampsDir)
	if err := lab.CheckExternal(e.ctx, settingsOf(specs, s.suite)); err != nil {
		return result, nil, err
	}
	log, err := trial.OpenLog(s.out, s.resumed == nil)
	if err != nil {
		return result, nil, err
	}
	defer log.Close()
	if s.resumed == nil { // those of a result that was replaced
		if err := os.RemoveAll(lab.Stamps); err != nil {
			return result, nil, fmt.Errorf("remove the stamps of the result before: %w", err)
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
		Lab: lab, Suite: s.suite, Seed: s.seed, Width: s.width, Progress: progress, Kept: s.kept, Trial: log.Append,
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
