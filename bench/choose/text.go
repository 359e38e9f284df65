package choose

import (
	"fmt"
	"io"
	"strings"
)

// inFull is of how many that fit all reasons are told, unless all are asked for.
const inFull = 3

// Text writes an answer for people.
func (a Answer) Text(w io.Writer, all bool) error {
	p := &page{w: w}
	p.line("Needed: %s.", strings.Join(a.Needs.Names(), "; "))
	p.line("")
	if a.Measured {
		p.line("Measured:")
		for _, r := range a.Results {
			p.line("  %s", r)
		}
	} else {
		p.line("Nothing was measured here. What stands below is claimed, expected or from documents; to measure: queuelab run --suite quick")
	}
	p.line("")
	fit := a.Fitting()
	switch {
	case len(fit) > 0:
		p.line("%s of %d fit. The place is by p99 end to end, as far as trials tell it:", counted(len(fit), "setting"), len(a.Settings))
		for i, c := range fit {
			p.candidate(c, all || i < inFull)
		}
	case len(a.Conflict) > 1:
		last := len(a.Conflict) - 1
		p.line("Nothing fits: these exclude each other here, no setting has %s and %q together.", strings.Join(quoted(a.Conflict[:last]), ", "), a.Conflict[last])
	case len(a.Conflict) == 1:
		p.line("Nothing fits: no setting has %q.", a.Conflict[0])
	default:
		p.line("Nothing is known to fit; some would if it were known.")
	}
	p.rest(a.Settings[len(fit):], all)
	if len(a.Changes) > 0 {
		p.line("")
		p.line("What would change this:")
	}
	for _, c := range a.Changes {
		p.line("  - %s", c.line())
		if c.Command != "" {
			p.line("      %s", c.Command)
		}
	}
	return p.err
}

// Names are the needs as they are told.
func (n Needs) Names() []string {
	var names []string
	for _, i := range n.items() {
		names = append(names, i.Name)
	}
	if n.Loses == MayLose {
		names = append(names, "may lose messages")
	}
	return names
}

// page writes lines until one fails.
type page struct {
	w   io.Writer
	err error
}

func (p *page) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *page) candidate(c Candidate, full bool) {
	p.line("%5s  %-32s %s", c.Places(), c.Setting, c.Speed.brief())
	if !full {
		return
	}
	p.line("       %s", c.Promise)
	p.reasons(c)
	p.line("       costs: %s (%s)", c.Cost.Runs.What, c.Cost.Runs.Source)
	for _, b := range c.Cost.Load {
		p.line("         %s (%s, %s)", b, b.Cell, b.Result)
	}
	for _, b := range c.Beware {
		p.line("       beware: %s", b)
	}
	p.line("")
}

func (p *page) reasons(c Candidate) {
	for _, r := range c.Reasons {
		p.line("       %-8s %s: %s", r.Verdict, r.Need, r.Why)
		for _, proof := range r.Proof {
			p.line("         %s", proof)
		}
	}
}

// rest are those that do not fit, each with what it lacks.
func (p *page) rest(list []Candidate, all bool) {
	for _, v := range []Verdict{Unknown, No} {
		by := grouped{}
		for _, c := range list {
			switch no := c.Lacks(No); {
			case v == No && len(no) > 0:
				by.add(lacking(c, No, no), c.Setting)
			case v == Unknown && len(no) == 0:
				by.add(lacking(c, Unknown, c.Lacks(Unknown)), c.Setting)
			}
		}
		if len(by) == 0 {
			continue
		}
		p.line("")
		p.line("%s", map[Verdict]string{Unknown: "Not known to fit:", No: "Out:"}[v])
		for _, key := range by.keys() {
			p.line("  %s", key)
			p.line("      %s", strings.Join(by[key], ", "))
		}
	}
	for _, c := range list {
		if all {
			p.line("")
			p.line("       %s", c.Setting)
			p.reasons(c)
		}
	}
}

// lacking is what a setting lacks: the reason where that is one need, since many
// share it, and else the names.
func lacking(c Candidate, v Verdict, needs []string) string {
	if len(needs) == 1 {
		for _, r := range c.Reasons {
			if r.Verdict == v {
				return r.Need + ": " + r.Why
			}
		}
	}
	return strings.Join(needs, ", ")
}

func (s *Speed) brief() string {
	if s == nil {
		return "not measured"
	}
	var parts []string
	if r := s.P99; r != nil {
		parts = append(parts, fmt.Sprintf("p99 %s at %s (n=%d)", micros(r.Median), perSecond(r.Offered), r.Trials))
	}
	if r := s.Held; r != nil {
		parts = append(parts, fmt.Sprintf("held %s (n=%d)", perSecond(r.Median), r.Trials))
	}
	return strings.Join(parts, ", ")
}

// fewNames are named in a line.
const fewNames = 8

func (c Change) line() string {
	names := c.Settings
	if len(names) == 0 || c.Command != "" && strings.HasSuffix(c.Command, strings.Join(names, ",")) {
		return c.What
	}
	more := ""
	if len(names) > fewNames {
		names, more = names[:fewNames], fmt.Sprintf(" and %d more", len(names)-fewNames)
	}
	return c.What + " " + strings.Join(names, ", ") + more
}

func quoted(names []string) []string {
	var all []string
	for _, n := range names {
		all = append(all, fmt.Sprintf("%q", n))
	}
	return all
}
