package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"queuelab/bench/trial"
)

type calibrateCmd struct {
	Cases string `placeholder:"NAMES" help:"Only these, separated by commas."`
	Out   string `placeholder:"DIR" help:"Write calibrate.json there."`
	Force bool   `help:"Replace a calibrate.json that is there."`
	JSON  bool   `name:"json" help:"Print calibrate.json, and no table."`

	Attempts int `default:"3" help:"How often a case is measured at most whose times alone are off, as on a machine that stalls. A count that is off is never measured again."`
}

func (calibrateCmd) Help() string {
	return `Runs queues with known faults through the harness, and compares what it reports
with what was injected: counts exactly, times within 5 per cent. It needs nothing
but this program, and takes two minutes. Exit status 1 when a case is off.

Examples:
  queuelab calibrate
  queuelab calibrate --out results/monday
  queuelab calibrate --cases frozen,dropping`
}

// calibrateFile is the name of what --out writes.
const calibrateFile = "calibrate.json"

func (c calibrateCmd) Validate() error {
	if c.Attempts < 1 || c.Attempts > 10 {
		return fmt.Errorf("--attempts=%d: want 1 to 10", c.Attempts)
	}
	return nil
}

func (c calibrateCmd) Run(e *env) error {
	var names []string
	for n := range strings.SplitSeq(c.Cases, ",") {
		if n = strings.TrimSpace(n); n != "" {
			names = append(names, n)
		}
	}
	path := filepath.Join(c.Out, calibrateFile)
	if c.Out != "" {
		if err := os.MkdirAll(c.Out, 0o755); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) && !c.Force {
			return fmt.Errorf("%s is there already: choose another directory with --out, or replace it with --force", path)
		}
	}
	lab, err := trial.NewLab(nil, "")
	if err != nil {
		return err
	}
	defer lab.Close()
	out, words := e.stdout, e.out(c.JSON)
	result, err := lab.Calibrate(e.ctx, names, c.Attempts, func(k trial.CalibrationCase) {
		verdict := "ok  "
		if !k.OK {
			verdict = "OFF "
		}
		fmt.Fprintf(words, "%s %-22s %s\n", verdict, k.Name, k.About)
		fmt.Fprintf(words, "     %-22s %s\n", "", calibrationNumbers(k))
		if !k.OK {
			fmt.Fprintf(words, "     %-22s off: %s\n", "", k.Why)
		}
	})
	if e.ctx.Err() != nil {
		return exitError(130)
	}
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if c.Out != "" {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	if c.JSON {
		_, err = out.Write(data)
		if err != nil {
			return err
		}
	}
	off := 0
	for _, k := range result.Cases {
		if !k.OK {
			off++
		}
	}
	f := result.Floor
	fmt.Fprintf(words, "\nThe harness itself adds, end to end at %.0f/s: p50 %d µs, p99 %d µs, max %d µs; all records of one message take %.2f µs.\n",
		f.RatePerSecond, f.EndToEnd.P50, f.EndToEnd.P99, f.EndToEnd.Max, f.RecordNanos/1000)
	if off > 0 {
		fmt.Fprintf(words, "%d of %d cases are off: do not believe this machine's numbers before you know why.\n", off, len(result.Cases))
		return exitError(1)
	}
	fmt.Fprintf(words, "%d of %d cases are reported as they were injected.\n", len(result.Cases), len(result.Cases))
	return nil
}

// calibrationNumbers shows what was injected, and where it is a time, what was
// reported; what is zero says nothing.
func calibrationNumbers(k trial.CalibrationCase) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(k.Injected)) {
		want, got := k.Injected[name], k.Reported[name]
		switch {
		case want == 0 && got == 0:
		case strings.HasSuffix(name, "Millis"):
			parts = append(parts, fmt.Sprintf("%s %.4g ms (theory %.4g)", strings.TrimSuffix(name, "Millis"), got, want))
		default:
			parts = append(parts, fmt.Sprintf("%s %.0f of %.0f", name, got, want))
		}
	}
	return strings.Join(parts, ", ")
}
