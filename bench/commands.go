package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"

	"queuelab/backends"
	"queuelab/bench/broker"
	"queuelab/bench/host"
	"queuelab/bench/report"
	"queuelab/bench/trial"
)

// output is standard output that remembers a failure: a list that was cut short
// by a full disk must not end as a success, though nobody looks at each line. Once
// nobody reads it any more it calls lost, so that what is under way ends, and
// leaves nothing: the signal that comes then would end it without.
type output struct {
	f    *os.File
	lost func(cause error)
	mu   sync.Mutex
	err  error
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	n, err := o.f.Write(b)
	if err != nil {
		o.mu.Lock()
		o.err = cmp.Or(o.err, err)
		o.mu.Unlock()
		if errors.Is(err, syscall.EPIPE) && o.lost != nil {
			o.lost(err)
		}
	}
	return n, err
}

// Fd is the file's.
func (o *output) Fd() uintptr { return o.f.Fd() }

func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// width of the terminal, or what fits most of them.
func width(w io.Writer) int {
	if f, ok := w.(interface{ Fd() uintptr }); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 160
}

type reportCmd struct {
	Dir string `arg:"" help:"A directory with a result.json."`
}

func (reportCmd) Help() string {
	return "Example:\n  queuelab report bench/results/20261130-101500"
}

func (c reportCmd) Run(e *env) error {
	result, err := report.Read(c.Dir)
	if err != nil {
		return err
	}
	if err := report.Render(c.Dir, result); err != nil {
		return err
	}
	return report.Table(e.stdout, result, e.color, width(e.stdout))
}

type listCmd struct {
	JSON bool `name:"json" help:"Machine-readable."`
}

func (listCmd) Help() string { return "Examples:\n  queuelab list\n  queuelab list --json" }

func (c listCmd) Run(e *env) error {
	type setting struct {
		Setting, Broker, Promise string
	}
	var list struct {
		Backends []map[string]string `json:"backends"`
		Settings []setting           `json:"settings"`
		Tests    map[string]string   `json:"tests"`
		Faults   map[string]string   `json:"faults"`
		Suites   []string            `json:"suites"`
	}
	for _, b := range backends.All() {
		list.Backends = append(list.Backends, map[string]string{"name": b.Name, "url": b.DefaultURL, "summary": b.Summary})
	}
	for _, s := range trial.Settings() {
		list.Settings = append(list.Settings, setting{s.String(), s.Broker, s.Promise})
	}
	list.Tests, list.Faults, list.Suites = trial.TestHelp(), trial.FaultHelp(), trial.Suites()
	if c.JSON {
		enc := json.NewEncoder(e.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(list)
	}
	fmt.Fprintln(e.stdout, "Backends (--queue NAME or a URL):")
	for _, b := range list.Backends {
		fmt.Fprintf(e.stdout, "  %-14s %s\n  %-14s %s\n", b["name"], b["summary"], "", b["url"])
	}
	fmt.Fprintln(e.stdout, "\nSettings (backend/setting):")
	for _, s := range list.Settings {
		fmt.Fprintf(e.stdout, "  %-29s %s\n", s.Setting, s.Promise)
	}
	fmt.Fprintln(e.stdout, "\nTests:")
	for _, t := range trial.Tests() {
		fmt.Fprintf(e.stdout, "  %-29s %s\n", t, list.Tests[t])
	}
	fmt.Fprintln(e.stdout, "\nFaults:")
	for _, f := range trial.Faults() {
		fmt.Fprintf(e.stdout, "  %-29s %s\n", f, list.Faults[f])
	}
	fmt.Fprintln(e.stdout, "\nSuites: "+strings.Join(list.Suites, ", "))
	return nil
}

type doctorCmd struct {
	JSON bool `name:"json" help:"Machine-readable."`
}

func (doctorCmd) Help() string {
	return "Exit status 1 when not even the smoke suite can run.\n\nExample:\n  queuelab doctor"
}

func (c doctorCmd) Run(e *env) error {
	if !c.JSON {
		return failUnless(host.Doctor(e.ctx, e.stdout, e.color))
	}
	ok, err := host.DoctorJSON(e.ctx, e.stdout)
	if err != nil {
		return err
	}
	return failUnless(ok)
}

func failUnless(ok bool) error {
	if !ok {
		return exitError(1)
	}
	return nil
}

type upCmd struct {
	Backends []string `arg:"" optional:"" help:"redis, rabbitmq, kafka, postgres, or names of backends; all of them when none is given."`
}

func (upCmd) Help() string {
	return "Examples:\n  queuelab up\n  queuelab up redis postgres\n  queuelab up kafka"
}

func (c upCmd) Run(e *env) error {
	return broker.Up(e.ctx, c.Backends, schemesOn, e.stdout)
}

// schemesOn are the schemes of the queues on a kind of broker, for people to paste.
func schemesOn(kind string) []string {
	if kind == "redis-sentinel" { // the queues that are measured on it
		return []string{"redis+list", "redis+streams"}
	}
	var schemes []string
	for _, b := range backends.All() {
		if b.Broker != "" && b.Broker == strings.TrimSuffix(kind, "-3") {
			schemes = append(schemes, b.Scheme)
		}
	}
	return schemes
}

type versionCmd struct{}

func (versionCmd) Run(e *env) error {
	fmt.Fprintln(e.stdout, "queuelab", commit())
	return nil
}

// commit is the revision that the program was built from, as far as it knows.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if rev == "" {
		return gitCommit()
	}
	return rev + dirty
}
