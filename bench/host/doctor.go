package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"queuelab/bench/trial"
)

// The states of a check.
const (
	OK      = "ok"
	Missing = "missing" // and something cannot run without it
	Poor    = "poor"    // it is here, and not as it should be
	Note    = "note"    // nothing depends on it today
)

// Check is one thing that was looked for.
type Check struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Found string `json:"found"` // version, size or latency; what is wrong, if anything is
	Path  string `json:"path,omitempty"`
	For   string `json:"for"`           // what needs it
	Get   string `json:"get,omitempty"` // how to get it, when it is missing

	kind string // the broker that runs on it, if one does
}

// Suite is a suite of measurements, and whether it can run here.
type Suite struct {
	Name string `json:"name"`
	Runs bool   `json:"runs"`
	Note string `json:"note"` // what it would lack
}

// Report is what doctor found.
type Report struct {
	OK     bool       `json:"ok"` // the smoke suite can run
	Checks []Check    `json:"checks"`
	Suites []Suite    `json:"suites"`
	Host   trial.Host `json:"host"`
}

// Doctor prints what is here, what is missing and how to get it, one line for
// each thing, and which suites can run. It reports whether the smoke suite can:
// that is exit code 0, and anything else is 1. A missing broker is no failure,
// its rows are skipped. It takes some seconds, since it asks Docker and times
// the disk.
func Doctor(ctx context.Context, out io.Writer, color bool) (ok bool) {
	r := Examine(ctx, os.TempDir())
	r.Print(out, color)
	return r.OK
}

// DoctorJSON is Doctor for programs.
func DoctorJSON(ctx context.Context, out io.Writer) (ok bool, err error) {
	r := Examine(ctx, os.TempDir())
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return r.OK, fmt.Errorf("write the report: %w", err)
	}
	return r.OK, nil
}

// Print writes the report for people.
func (r Report) Print(out io.Writer, color bool) {
	paint := func(state, s string) string {
		code := map[string]string{OK: "32", Missing: "1;31", Poor: "33", Note: "2"}[state]
		if !color || code == "" {
			return s
		}
		return "\x1b[" + code + "m" + s + "\x1b[0m"
	}
	width := 0
	for _, c := range r.Checks {
		width = max(width, len(c.Name))
	}
	var b strings.Builder
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%s  %-*s  %s", paint(c.State, fmt.Sprintf("%-7s", c.State)), width, c.Name, c.Found)
		if c.Path != "" {
			fmt.Fprintf(&b, "  %s", c.Path)
		}
		fmt.Fprintf(&b, "  (for %s)", c.For)
		if c.Get != "" {
			fmt.Fprintf(&b, "; get it: %s", c.Get)
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	for _, s := range r.Suites {
		state, word := OK, "can run"
		if !s.Runs {
			state, word = Missing, "cannot run"
		}
		fmt.Fprintf(&b, "suite %-5s  %s", s.Name, paint(state, word))
		if s.Note != "" {
			fmt.Fprintf(&b, ": %s", s.Note)
		}
		b.WriteByte('\n')
	}
	fmt.Fprint(out, b.String())
}
