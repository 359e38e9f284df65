package main

import (
	"encoding/json"
	"strings"

	"queuelab/bench/truth"
)

type truthCmd struct {
	Experiments []string `arg:"" optional:"" help:"Names of experiments, or of brokers; all of them when none is given."`
	JSON        bool     `name:"json" help:"Machine-readable."`
}

func (truthCmd) Help() string {
	var b strings.Builder
	b.WriteString("Runs each on the real client library with its defaults, against the real broker\nthrough a proxy that loses what a network can lose. Exit status 3 when a claim\ndoes not hold.\n\nExamples:\n  queuelab truth\n  queuelab truth redis\n\nExperiments:\n")
	for _, x := range truth.All() {
		b.WriteString("  " + x.Name + ": " + x.Claim + "\n")
	}
	return b.String()
}

func (c truthCmd) Run(e *env) error {
	facts, err := truth.Run(e.ctx, truth.Options{Names: c.Experiments, Log: e.stderr})
	if err != nil {
		return err
	}
	if c.JSON {
		enc := json.NewEncoder(e.stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(facts)
	} else {
		err = truth.Write(e.stdout, facts)
	}
	if err != nil {
		return err
	}
	for _, f := range facts {
		if !f.Holds && f.Skipped == "" {
			return exitError(3)
		}
	}
	return nil
}
