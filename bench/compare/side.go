// Package compare tells whether two results differ by more than chance: per cell
// and metric the difference, its interval, a test, and a verdict. What makes two
// results incomparable is found first.
package compare

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"queuelab/bench/report"
	"queuelab/bench/trial"
)

// Side is one of the two that are compared: one result, or several of which the
// trials of equal cells are pooled.
type Side struct {
	Given   string   // as on the command line
	Setting string   // only this backend/setting; "": all, each with its namesake
	Paths   []string // of Results, one each
	Results []trial.Result
}

// Load reads a side: a result's directory or file, or several separated by
// commas. A trailing ":backend/setting" chooses one setting of them.
func Load(given string) (Side, error) {
	s := Side{Given: given}
	list := given
	if at := strings.LastIndex(given, ":"); at > 0 && !exists(given) && strings.Count(given[at:], "/") == 1 {
		list, s.Setting = given[:at], given[at+1:]
	}
	paths := []string{list}
	if !exists(list) { // a comma may also be part of a name
		paths = strings.Split(list, ",")
	}
	for _, p := range paths {
		p = strings.TrimSpace(p)
		if p == "" {
			return s, fmt.Errorf("%q has an empty name in it", given)
		}
		r, err := report.Read(p)
		if err != nil {
			return s, err
		}
		for i, other := range s.Results {
			if r.Run.ID != "" && r.Run.ID == other.Run.ID && r.Run.StartedAt.Equal(other.Run.StartedAt) {
				return s, fmt.Errorf("%s and %s are the same run: its trials would count twice", s.Paths[i], p)
			}
		}
		s.Paths, s.Results = append(s.Paths, p), append(s.Results, r)
	}
	return s, s.check()
}

// Of is a side of results that are at hand.
func Of(name string, results ...trial.Result) Side {
	return Side{Given: name, Paths: make([]string, len(results)), Results: results}
}

// Choose is the side with only one of its settings.
func (s Side) Choose(setting string) Side {
	s.Setting = setting
	return s
}

// Settings lists the backend/setting names that were measured, in their order.
func (s Side) Settings() []string {
	var names []string
	for _, r := range s.Results {
		for _, c := range r.Cells {
			if name := settingOf(c); !slices.Contains(names, name) && measured(c) {
				names = append(names, name)
			}
		}
	}
	return names
}

func (s Side) check() error {
	names := s.Settings()
	switch {
	case len(names) == 0:
		return fmt.Errorf("%s holds no measured cell", s.Given)
	case s.Setting != "" && !slices.Contains(names, s.Setting):
		return fmt.Errorf("%s holds no setting %q: it has %s", s.Given, s.Setting, strings.Join(names, ", "))
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

func settingOf(c trial.Cell) string { return c.Backend + "/" + c.Setting }

// measured reports whether a cell holds any trial, valid or not.
func measured(c trial.Cell) bool { return len(c.Runs) > 0 || c.Valid > 0 }

// key is what cells of the two sides must share.
type key struct{ setting, test, fault string }

// name is how a cell is called, and what a budget's pattern is matched with.
func (k key) name() string {
	n := k.test
	if k.setting != "" {
		n = k.setting + "/" + n
	}
	if k.fault != "" && k.fault != trial.FaultNone {
		n += "/" + k.fault
	}
	return n
}

// cells gathers the side's cells by key, in the order in which they come. Where
// one setting was chosen it is no part of the key: it stands against another.
func (s Side) cells() (keys []key, byKey map[key][]trial.Cell) {
	byKey = map[key][]trial.Cell{}
	for _, r := range s.Results {
		for _, c := range r.Cells {
			if s.Setting != "" && settingOf(c) != s.Setting || !measured(c) {
				continue
			}
			k := key{settingOf(c), c.Test, c.Fault}
			if s.Setting != "" {
				k.setting = ""
			}
			if byKey[k] == nil {
				keys = append(keys, k)
			}
			byKey[k] = append(byKey[k], c)
		}
	}
	return keys, byKey
}
