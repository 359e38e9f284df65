package choose

import (
	"cmp"
	"fmt"
	"slices"

	"queuelab/bench/trial"
)

// Answer is what the evidence says to needs.
type Answer struct {
	Needs    Needs       `json:"needs"`
	Results  []string    `json:"results"` // what was measured, a line for each result
	Measured bool        `json:"measured"`
	Settings []Candidate `json:"settings"` // all: those that fit first, by rank; then by what they lack
	// Conflict is the fewest needs that no setting meets together, where none can
	// fit whatever is measured.
	Conflict []string `json:"conflict,omitempty"`
	Changes  []Change `json:"changes"` // what would change this answer
}

// Candidate is one setting's part of an answer.
type Candidate struct {
	Setting string `json:"setting"`
	Promise string `json:"promise"`
	Fits    bool   `json:"fits"` // every need is a yes
	// First and Last are the places that its trials leave possible among those that
	// fit; 0: it has none.
	First    int      `json:"first"`
	Last     int      `json:"last"`
	Speed    *Speed   `json:"speed,omitempty"`
	Unplaced string   `json:"unplaced,omitempty"` // why its place is not certain
	Reasons  []Reason `json:"reasons"`            // one for each need
	Beware   []string `json:"beware"`             // what else is known to go wrong with it
	Cost     Cost     `json:"cost"`
}

// Lacks counts the needs with a verdict.
func (c Candidate) Lacks(v Verdict) (needs []string) {
	for _, r := range c.Reasons {
		if r.Verdict == v {
			needs = append(needs, r.Need)
		}
	}
	return needs
}

// Fitting are the candidates that fit.
func (a Answer) Fitting() []Candidate {
	i := slices.IndexFunc(a.Settings, func(c Candidate) bool { return !c.Fits })
	if i < 0 {
		i = len(a.Settings)
	}
	return a.Settings[:i]
}

// Choose answers needs. The error is that of Needs.Check.
func (e *Evidence) Choose(n Needs) (Answer, error) {
	if err := n.Check(); err != nil {
		return Answer{}, err
	}
	a := e.ranked(n, true)
	for _, s := range e.Results {
		a.Results = append(a.Results, s.Line())
		a.Measured = a.Measured || slices.ContainsFunc(s.Result.Cells, func(c trial.Cell) bool { return counts(&c) })
	}
	a.Changes = e.changes(a)
	return a, nil
}

// ranked is an answer without what would change it.
func (e *Evidence) ranked(n Needs, whole bool) Answer {
	a := Answer{Needs: n, Results: []string{}, Settings: e.judge(n, whole)}
	rank(a.Settings)
	if len(a.Fitting()) == 0 {
		a.Conflict = conflict(a.Settings)
	}
	return a
}

// judge judges every setting, in their order. whole also tells of them what was not
// asked for.
func (e *Evidence) judge(n Needs, whole bool) []Candidate {
	items := n.items()
	all := []Candidate{} // in JSON an empty list
	for _, s := range e.Settings {
		c := e.candidate(s, n)
		out := Candidate{Setting: s.String(), Promise: s.Promise, Fits: true, Reasons: []Reason{}}
		if whole {
			out.Beware, out.Cost, out.Speed = c.beware(), c.cost(), c.speed()
		}
		for _, i := range items {
			r := i.judge(c)
			r.Need = i.Name
			if r.Proof == nil {
				r.Proof = []Proof{}
			}
			out.Fits = out.Fits && r.Verdict == Yes
			out.Reasons = append(out.Reasons, r)
		}
		all = append(all, out)
	}
	return all
}

// beware are losses and repeats that were measured, whatever was asked for, and
// claims that surprise.
func (c *candidate) beware() []string {
	all := []string{}
	told := map[string]bool{}
	for _, m := range c.e.cells(c.String(), "", trial.TestCrash, trial.TestFault) {
		if m.Lost > 0 && !told[m.Fault] {
			all = append(all, m.lossProof().String())
		}
		told[m.Fault] = told[m.Fault] || m.Lost > 0
	}
	for _, w := range []struct {
		is   bool
		what string
	}{
		{c.claims.MayStrand, "a message may lie there while a consumer waits, until the next one is published"},
		{c.claims.Skips, "what comes while nobody receives is skipped, without an error"},
		{c.claims.PopGap, "a consumer that is killed just after it took a message loses it"},
		{c.claims.DropsOldest, "a full queue drops its oldest messages, accepted as they are"},
	} {
		if w.is {
			all = append(all, "claimed by the open queue: "+w.what)
		}
	}
	return all
}

// conflict is the smallest set of needs of which every setting fails at least one
// for certain; nil where some setting is only not known to fit.
func conflict(all []Candidate) []string {
	if len(all) == 0 || slices.ContainsFunc(all, func(c Candidate) bool { return len(c.Lacks(No)) == 0 }) {
		return nil
	}
	var names []string
	for _, r := range all[0].Reasons {
		names = append(names, r.Need)
	}
	excluded := func(set []string) bool {
		return !slices.ContainsFunc(all, func(c Candidate) bool {
			return !slices.ContainsFunc(c.Lacks(No), func(n string) bool { return slices.Contains(set, n) })
		})
	}
	for size := 1; size < len(names); size++ {
		var found []string
		subsets(names, size, func(set []string) bool {
			if excluded(set) {
				found = slices.Clone(set)
			}
			return found == nil
		})
		if found != nil {
			return found
		}
	}
	return names
}

// subsets calls do with every subset of that size, until it returns false.
func subsets(names []string, size int, do func([]string) bool) bool {
	var step func(from int, set []string) bool
	step = func(from int, set []string) bool {
		if len(set) == size {
			return do(set)
		}
		for i := from; i < len(names); i++ {
			if !step(i+1, append(set, names[i])) {
				return false
			}
		}
		return true
	}
	return step(0, nil)
}

// order puts those that fit first, then those that lack less.
func order(all []Candidate) {
	slices.SortStableFunc(all, func(a, b Candidate) int {
		return cmp.Or(
			cmp.Compare(oneIf(b.Fits), oneIf(a.Fits)),
			cmp.Compare(len(a.Lacks(No)), len(b.Lacks(No))),
			cmp.Compare(len(a.Lacks(Unknown)), len(b.Lacks(Unknown))),
		)
	})
}

// Places are a candidate's rank in words.
func (c Candidate) Places() string {
	if c.First == c.Last {
		return fmt.Sprint(c.First)
	}
	return fmt.Sprintf("%d–%d", c.First, c.Last)
}
