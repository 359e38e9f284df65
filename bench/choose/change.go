package choose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Change is one thing that would change an answer.
type Change struct {
	What     string   `json:"what"`
	Settings []string `json:"settings"`
	Command  string   `json:"command,omitempty"` // that would tell
}

// mostChanges of one kind are told.
const mostChanges = 4

func (e *Evidence) changes(a Answer) []Change {
	out := []Change{}
	add := func(c ...Change) { out = append(out, c[:min(len(c), mostChanges)]...) }
	if !a.Measured {
		add(Change{"Nothing was measured here: what a setting loses, holds and costs on your machine is only expected.", []string{}, "queuelab run --suite quick; queuelab faults run"})
	}
	add(e.strictest(a)...)
	add(nearlyFit(a)...)
	add(missing(a)...)
	add(assumed(a)...)
	add(unplaced(a)...)
	add(e.doubts(a)...)
	return out
}

// strictest is the need that excludes most, and the one without which most more
// would fit.
func (e *Evidence) strictest(a Answer) []Change {
	var out []Change
	excludes, most := "", 0
	for _, i := range a.Needs.items() {
		n := 0
		for _, c := range a.Settings {
			n += len(slices.DeleteFunc(c.Lacks(No), func(need string) bool { return need != i.Name }))
		}
		if n > most {
			excludes, most = i.Name, n
		}
	}
	if len(a.Needs.items()) < 2 { // the rest is what stands above
		return nil
	}
	if most > 0 {
		out = append(out, Change{fmt.Sprintf("%q excludes most: %d of %d settings.", excludes, most, len(a.Settings)), []string{}, ""})
	}
	without, gain := "", []string{}
	for _, i := range a.Needs.items() {
		var more []string
		for _, c := range e.judge(i.drop(a.Needs), false) {
			if c.Fits && !slices.ContainsFunc(a.Fitting(), func(f Candidate) bool { return f.Setting == c.Setting }) {
				more = append(more, c.Setting)
			}
		}
		if len(more) > len(gain) {
			without, gain = i.Name, more
		}
	}
	if len(gain) > 0 {
		out = append(out, Change{fmt.Sprintf("Without %q %d more would fit.", without, len(gain)), gain, ""})
	}
	return out
}

// nearlyFit are settings that fail by one need alone, by that need.
func nearlyFit(a Answer) []Change {
	by := grouped{}
	if len(a.Needs.items()) < 2 {
		return nil
	}
	for _, c := range a.Settings {
		if no := c.Lacks(No); len(no) == 1 && len(c.Lacks(Unknown)) == 0 {
			by.add(no[0], c.Setting)
		}
	}
	var out []Change
	for _, need := range by.keys() {
		out = append(out, Change{fmt.Sprintf("Only %q stands against %s.", need, counted(len(by[need]), "setting")), by[need], ""})
	}
	return out
}

// missing are measurements without which a setting is only not known to fit.
func missing(a Answer) []Change {
	by := grouped{}
	for _, c := range a.Settings {
		if c.Fits || len(c.Lacks(No)) > 0 {
			continue
		}
		for _, r := range c.Reasons {
			if r.Verdict == Unknown {
				by.add(strings.TrimSuffix(r.Measure, c.Setting)+"\n"+r.Need, c.Setting)
			}
		}
	}
	var out []Change
	for _, key := range by.keys() {
		command, need, _ := strings.Cut(key, "\n")
		if command != "" {
			command += strings.Join(by[key], ",")
		}
		out = append(out, Change{fmt.Sprintf("Not known of %s: %q.", counted(len(by[key]), "setting"), need), by[key], command})
	}
	return out
}

// assumed are faults under which settings that fit were not tried.
func assumed(a Answer) []Change {
	by := grouped{}
	for _, c := range a.Fitting() {
		for _, r := range c.Reasons {
			tried := map[string]bool{}
			for _, p := range r.Proof {
				if p.Kind == Expected && p.fault != "" && !tried[p.fault] {
					tried[p.fault] = true
					by.add(p.fault, c.Setting)
				}
			}
		}
	}
	var out []Change
	for _, f := range by.keys() {
		if f == "none" {
			continue
		}
		out = append(out, Change{fmt.Sprintf("Of %s under %s the oracle's word was taken, wholly or in part.", counted(len(by[f]), "setting"), f), by[f], measureFault(f, by[f]...)})
	}
	return out
}

// unplaced tells why the first place is not certain.
func unplaced(a Answer) []Change {
	fit := a.Fitting()
	if len(fit) < 2 || fit[0].First == fit[0].Last {
		return nil
	}
	names := []string{}
	for _, c := range fit {
		if c.First == 1 && c.Speed != nil {
			names = append(names, c.Setting)
		}
	}
	if len(names) < 2 {
		return nil
	}
	return []Change{{fmt.Sprintf("The first place is not certain (%s).", fit[0].Unplaced), names, "queuelab run --suite full --backends " + strings.Join(names, ",")}}
}

// doubts are cells of settings that fit, or may, that prove nothing.
func (e *Evidence) doubts(a Answer) []Change {
	var out []Change
	for _, c := range a.Settings {
		if len(c.Lacks(No)) > 0 {
			continue
		}
		for _, d := range e.doubtful(c.Setting) {
			out = append(out, Change{"A measurement that proves nothing: " + d, []string{}, ""})
		}
	}
	return out
}

// grouped are settings by what they have in common.
type grouped map[string][]string

func (g grouped) add(key, setting string) {
	if !slices.Contains(g[key], setting) {
		g[key] = append(g[key], setting)
	}
}

// keys are those with the most settings first.
func (g grouped) keys() []string {
	keys := slices.Sorted(maps.Keys(g))
	slices.SortStableFunc(keys, func(a, b string) int { return len(g[b]) - len(g[a]) })
	return keys
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
