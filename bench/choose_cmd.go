package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/term"

	"queuelab/bench/choose"
)

// nothingFits is the exit status of needs that make sense and that no setting is
// known to meet.
const nothingFits = 3

type chooseCmd struct {
	Need    []string      `sep:"," placeholder:"LIST" help:"What the queue must do, by name, separated by commas; below."`
	Loses   string        `enum:",may-lose,nothing-on-crash,nothing-on-power-loss" default:"" placeholder:"WHAT" help:"may-lose, nothing-on-crash (of processes) or nothing-on-power-loss (nor when the power goes)."`
	Rate    float64       `placeholder:"N" help:"Messages a second that it must hold."`
	P99     time.Duration `name:"p99" placeholder:"TIME" help:"End to end, as in 20ms; at --rate where that is given."`
	Backlog int64         `placeholder:"N" help:"Messages that must be able to wait."`
	Groups  int           `placeholder:"N" help:"Groups of consumers that each get everything; from 2 on it is the need groups."`
	Only    []string      `sep:"," placeholder:"LIST" help:"Brokers that may be used: redis, rabbitmq, kafka, postgres, nats, or none."`

	Ask      bool     `help:"Ask the five questions, and read the answers from standard input. On a terminal without needs that is the default."`
	Result   []string `placeholder:"PATH" help:"A result's directory or file; several are fine, the first counts first. Default: those in bench/results from the machine of the newest, the newest first, and fault campaigns after the others."`
	All      bool     `help:"All reasons of all settings."`
	Table    bool     `help:"No needs: print every backend by the criteria that queues are compared by."`
	Markdown bool     `help:"The table as Markdown."`
	JSON     bool     `name:"json" help:"Machine-readable."`
}

func (chooseCmd) Help() string {
	names := ""
	for _, f := range choose.Features() {
		names += fmt.Sprintf("  %-16s %s\n", f.Name, f.What)
	}
	return `From needs to settings, ranked, each reason with its proof: a measured cell, what the
open queue claims, a row of the oracle, or a document. What is not known is no yes.
Numbers of a machine are of that machine.

The names for --need:
` + names + `
Examples:
  queuelab choose --need durable,competing,ordered-per-key --rate 5000 --p99 20ms
  queuelab choose --loses nothing-on-power-loss --only redis
  queuelab choose --need replay --groups 3 --backlog 1000000 --json
  queuelab choose --ask
  queuelab choose --table --markdown

Exit status: 0 something fits; 1 a result cannot be read; 2 wrong usage, or needs that
are each other's opposite; 3 needs that make sense, and that nothing is known to meet.`
}

func (c *chooseCmd) needs() choose.Needs {
	return choose.Needs{Must: c.Need, Loses: c.Loses, Groups: c.Groups, Rate: c.Rate, Backlog: c.Backlog, P99: c.P99, Only: c.Only}
}

func (c *chooseCmd) Run(e *env) error {
	n := c.needs()
	none := len(n.Names()) == 0 && c.Groups == 0
	switch {
	case c.Markdown && (!c.Table || c.JSON):
		return usage(e, errors.New("--markdown is a form of --table, and --json another"))
	case c.Table && (c.Ask || !none):
		return usage(e, errors.New("--table tells every backend and takes no needs: leave them out, or --table"))
	case c.Ask && !none:
		return usage(e, errors.New("--ask asks for the needs: leave them out, or --ask"))
	case c.Ask || none && !c.Table && inputIsTerminal(e):
		var err error
		// Words of needs and questions go where they do not disturb what is printed.
		if n, err = choose.Ask(e.stdin, e.stderr); err != nil {
			return usage(e, err)
		}
	}
	if !c.Table {
		// Before results are read: what cannot be meant needs none.
		if err := n.Check(); err != nil {
			return usage(e, err)
		}
	}
	evidence, err := c.evidence(e)
	if err != nil {
		return err
	}
	if c.Table {
		return c.table(e, evidence)
	}
	answer, err := evidence.Choose(n)
	if err != nil {
		return usage(e, err)
	}
	if c.JSON {
		err = encode(e.stdout, answer)
	} else {
		err = answer.Text(e.stdout, c.All)
	}
	if err != nil {
		return err
	}
	if len(answer.Fitting()) == 0 {
		return exitError(nothingFits)
	}
	return nil
}

// evidence reads the results that were named, or those that are found.
func (c *chooseCmd) evidence(e *env) (*choose.Evidence, error) {
	if len(c.Result) > 0 {
		results, err := choose.Load(c.Result...)
		if err != nil {
			return nil, err
		}
		return choose.New(results...)
	}
	results, skipped := choose.Newest(filepath.Join("bench", "results"))
	if skipped != nil {
		fmt.Fprintf(e.stderr, "queuelab: left out: %v\n", skipped)
	}
	return choose.New(results...)
}

func (c *chooseCmd) table(e *env, evidence *choose.Evidence) error {
	switch {
	case c.JSON:
		return encode(e.stdout, evidence.Table())
	case c.Markdown:
		return evidence.TableMarkdown(e.stdout)
	}
	return evidence.TableText(e.stdout)
}

func inputIsTerminal(e *env) bool {
	f, ok := e.stdin.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
