package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"queuelab/bench/ledger"
	"queuelab/bench/lie"
	"queuelab/bench/report"
	"queuelab/bench/trial"
)

type lieCmd struct {
	Result string `arg:"" optional:"" help:"A result's directory; none: a queue that stands still for a second, run for it now."`
	Cell   string `placeholder:"BACKEND/SETTING" help:"Whose latency; default: the one with the longest tail."`
	JSON   bool   `name:"json" help:"Machine-readable."`
}

func (lieCmd) Help() string {
	return `The same recorded run, told as published tools have told theirs, beside the truth.
The truth counts every message from when it was due; each of the others is named
after its mistake.

Examples:
  queuelab lie
  queuelab lie bench/results/20261130-101500
  queuelab lie bench/results/20261130-101500 --cell kafka/acks-all`
}

func (c lieCmd) Run(e *env) error {
	stamps, what, others, err := c.stamps(e)
	if err != nil {
		return err
	}
	told := lie.Reporters(stamps)
	if c.JSON {
		return lieJSON(e, what, told)
	}
	fmt.Fprintf(e.stdout, "%s, end to end, in milliseconds:\n\n", what)
	t := table.NewWriter()
	t.SetOutputMirror(e.stdout)
	t.SetStyle(table.StyleLight)
	t.Style().Options.SeparateRows = false
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 8, WidthMax: max(30, width(e.stdout)-100), WidthMaxEnforcer: text.WrapSoft}})
	t.AppendHeader(table.Row{"told by", "mean", "p50", "p90", "p99", "p99.9", "max", "what it does"})
	for _, x := range told {
		how := x.How
		if x.Met != "" {
			how += " (" + x.Met + ")"
		}
		t.AppendRow(table.Row{x.Name, number(x.Mean), number(x.P50), number(x.P90), number(x.P99), number(x.P999), number(x.Max), how})
	}
	t.Render()
	if len(others) > 0 {
		fmt.Fprintf(e.stdout, "\nThere are also, with --cell: %s\n", strings.Join(others, ", "))
	}
	return nil
}

func number(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.4g", v)
}

func lieJSON(e *env, what string, told []lie.Told) error {
	type row struct {
		Name    string   `json:"name"`
		How     string   `json:"how"`
		Met     string   `json:"met,omitempty"`
		Mean    *float64 `json:"meanMillis"`
		P50     *float64 `json:"p50Millis"`
		P90     *float64 `json:"p90Millis"`
		P99     *float64 `json:"p99Millis"`
		P999    *float64 `json:"p999Millis"`
		Max     *float64 `json:"maxMillis"`
		Samples int      `json:"samples"`
	}
	known := func(v float64) *float64 {
		if math.IsNaN(v) {
			return nil
		}
		return &v
	}
	out := struct {
		Run   string `json:"run"`
		Tells []row  `json:"tells"`
	}{Run: what}
	for _, x := range told {
		out.Tells = append(out.Tells, row{x.Name, x.How, x.Met, known(x.Mean), known(x.P50), known(x.P90), known(x.P99), known(x.P999), known(x.Max), x.Samples})
	}
	enc := json.NewEncoder(e.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

// stamps are those of a recorded run, or of one made for it.
func (c lieCmd) stamps(e *env) (stamps []ledger.Stamp, what string, others []string, err error) {
	dir := c.Result
	if dir == "" {
		lab, err := trial.NewLab(nil, "")
		if err != nil {
			return nil, "", nil, err
		}
		defer lab.Close()
		if lab.Stamps, err = os.MkdirTemp("", "queuelab-lie-"); err != nil {
			return nil, "", nil, err
		}
		defer os.RemoveAll(lab.Stamps)
		fmt.Fprintln(e.stderr, "queuelab: running a queue that stands still for one second of thirty, 1,000 messages a second")
		path, err := lab.RecordFrozen(e.ctx)
		if err != nil {
			return nil, "", nil, err
		}
		stamps, err = readStamps(path)
		return stamps, "A queue that stood still for 1 s of 30 s, at 1,000/s", nil, err
	}
	result, err := report.Read(dir)
	if err != nil {
		return nil, "", nil, err
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	type recorded struct {
		name, file string
		p99        int64
	}
	var found []recorded
	for _, cell := range result.Cells {
		for _, run := range cell.Runs {
			if run.Stamps != "" && run.LatencyMicros != nil {
				found = append(found, recorded{cell.Backend + "/" + cell.Setting, run.Stamps, run.LatencyMicros.EndToEnd.P99})
			}
		}
	}
	if len(found) == 0 {
		return nil, "", nil, fmt.Errorf("%s has no recorded stamps: measure the latency anew with this queuelab, or try `queuelab lie` without a result", c.Result)
	}
	slices.SortStableFunc(found, func(a, b recorded) int { return int(b.p99 - a.p99) })
	at := 0
	if c.Cell != "" {
		at = slices.IndexFunc(found, func(r recorded) bool { return r.name == c.Cell })
	}
	for i, r := range found {
		if i != at {
			others = append(others, r.name)
		}
	}
	if at < 0 {
		return nil, "", nil, fmt.Errorf("--cell: %q has no recorded stamps in %s: there are %s", c.Cell, c.Result, strings.Join(others, ", "))
	}
	// The name comes from a file that anyone may have written.
	if !filepath.IsLocal(found[at].file) {
		return nil, "", nil, fmt.Errorf("%s names stamps outside of its directory: %q", c.Result, found[at].file)
	}
	stamps, err = readStamps(filepath.Join(dir, found[at].file))
	return stamps, found[at].name + ", " + result.Run.StartedAt.Format(time.DateTime), others, err
}

func readStamps(path string) ([]ledger.Stamp, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the stamps %s are gone: copy the whole directory of a result, not result.json alone", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the stamps: %w", err)
	}
	defer f.Close()
	stamps, err := ledger.ReadStamps(f)
	if err != nil {
		return nil, fmt.Errorf("read the stamps %s: %w", path, err)
	}
	return stamps, nil
}
