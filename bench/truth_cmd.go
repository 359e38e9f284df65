package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"queuelab/bench/report"
	"queuelab/bench/truth"
)

type truthCmd struct {
	Experiments []string `arg:"" optional:"" help:"Names of experiments, or of brokers; all of them when none is given."`
	JSON        bool     `name:"json" help:"Machine-readable."`
	HTML        string   `name:"html" placeholder:"FILE" help:"Write a page of it too, in English and Chinese, that needs nothing else."`
}

func (truthCmd) Help() string {
	var b strings.Builder
	b.WriteString("Runs each on the real client library with its defaults, against the real broker\nthrough a proxy that loses what a network can lose. Exit status 3 when a claim\ndoes not hold.\n\nExamples:\n  queuelab truth\n  queuelab truth redis\n  queuelab truth --html truth.html\n\nExperiments:\n")
	for _, x := range truth.All() {
		b.WriteString("  " + x.Name + ": " + x.Claim + "\n")
	}
	return b.String()
}

func (c truthCmd) Run(e *env) error {
	facts, failed := truth.Run(e.ctx, truth.Options{Names: c.Experiments, Log: e.stderr})
	if facts == nil {
		return usage(e, failed)
	}
	// What was seen is told, also where another broker did not start.
	var err error
	if c.JSON {
		enc := json.NewEncoder(e.stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(facts)
	} else {
		err = truth.Write(e.stdout, facts)
	}
	if c.HTML != "" && err == nil {
		err = c.page(facts)
	}
	if err := cmp.Or(failed, err); err != nil {
		return err
	}
	for _, f := range facts {
		if !f.Holds && f.Skipped == "" {
			return exitError(3)
		}
	}
	return nil
}

// page writes the page, once the whole of it could be made.
func (c truthCmd) page(facts []truth.Fact) error {
	var b bytes.Buffer
	if err := report.TruthHTML(&b, facts); err != nil {
		return err
	}
	if err := os.WriteFile(c.HTML, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the page of truths: %w", err)
	}
	return nil
}
