package report

import (
	"cmp"
	"slices"

	"queuelab/bench/trial"
)

// answer is the report's first word to one need: which setting, and why, or why
// this result cannot tell.
type answer struct {
	Need   text
	Group  group
	State  mark // of the answer, as a symbol and a class
	Choice text
	Text   text
	Out    []text // who of the profile does not qualify, and why
}

// needs are the questions that people come with, each for one profile.
func needs() []struct {
	Profile string
	Need    text
} {
	return []struct {
		Profile string
		Need    text
	}{
		{trial.ProfileDiskSync, say("For orders you cannot lose")},
		{trial.ProfileDiskAsync, say("If a power cut may lose what was not synced")},
		{trial.ProfileMemory, say("If a killed broker may lose everything, and a killed consumer nothing")},
		{trial.ProfileAtMostOnce, say("For notifications that may be lost")},
	}
}

func decided() mark   { return mark{Symbol: "✓", Class: "good"} }
func tied() mark      { return mark{Symbol: "≈", Class: "soft"} }
func undecided() mark { return mark{Symbol: "?", Class: "warn"} }

// answers go through the needs. The rules, in this order: only competitors of
// the profile; out is who lost what the profile promises to keep, and who was
// not tested; what was kept in too few crashes settles nothing; among the rest
// the lowest p99 wins, if the intervals tell it from the others.
func (v *view) answers() []answer {
	groups := map[string]group{}
	for _, g := range v.groups() {
		groups[g.Profile] = g
	}
	var out []answer
	for _, n := range needs() {
		g := groups[n.Profile]
		g.Profile = n.Profile
		a := answer{Need: n.Need, Group: g, State: undecided()}
		g.answer(&a)
		out = append(out, a)
	}
	return out
}

func (g group) answer(a *answer) {
	var kept, doubtful []standing
	proof, failed := map[*row]text{}, false
	var unasked blanks
	for _, s := range g.standings(byLatency()) {
		if s.Row.Unranked() {
			continue
		}
		t, c, because := verdictOn(s.Row, g.Profile)
		if c != nil {
			because = because.at(c.ID)
		}
		switch t {
		case sound:
			kept, proof[s.Row] = append(kept, s), because
		case thin:
			doubtful, proof[s.Row] = append(doubtful, s), because
		case untested:
			unasked.add(nameOf(s), because)
		default:
			failed = true
			a.Out = append(a.Out, join(colon(), nameOf(s), because))
		}
	}
	a.Out = append(a.Out, unasked.texts()...)
	stay := append(slices.Clone(kept), doubtful...)
	if g.Profile == trial.ProfileDiskAsync {
		a.Out = append(a.Out, reaches(stay)...)
	}
	if len(decisive(g.Profile)) > 0 { // the others promise to keep nothing
		a.Out = append(a.Out, elsewhere(stay)...)
	}
	switch {
	case len(g.competitors()) == 0:
		a.Text = say("No setting of this profile is in this result.")
	case len(kept) > 0:
		g.choose(a, kept, proof)
		for _, s := range doubtful {
			a.Out = append(a.Out, say("{0}: too few crashes: {1}", nameOf(s), proof[s.Row]))
		}
	case len(doubtful) > 0:
		a.Choice = names(doubtful)
		a.Text = say("Too few crashes to decide: nothing was lost, but 6 crashes are the least that say anything ({0}).", proof[doubtful[0].Row])
	case !failed:
		a.Text = say("Nothing that would decide it was tested with a valid result.")
	default:
		a.Text = say("None of the settings measured here qualifies.")
	}
}

// choose picks among those that keep what the profile promises. The ranked
// stand first, the best in front.
func (g group) choose(a *answer, kept []standing, proof map[*row]text) {
	slices.SortStableFunc(kept, func(a, b standing) int {
		if a.Ranked() != b.Ranked() {
			return oneIf(b.Ranked()) - oneIf(a.Ranked())
		}
		if !a.Ranked() {
			return 0
		}
		return cmp.Compare(a.Median.Float(), b.Median.Float())
	})
	best := kept[0]
	if !best.Ranked() {
		a.Choice = names(kept)
		if len(kept) == 1 {
			a.State = decided()
			a.Text = join(pair(" ", ""), because(proof[best.Row]), say("It is the only one of its profile that qualifies; its latency has no rank: {0}.", best.Why))
			return
		}
		a.Text = join(pair(" ", ""), because(proof[best.Row]), say("Which of them is faster this result cannot tell: {0}.", best.Why))
		return
	}
	// Ranks count the whole profile; who fell out must not hold a place.
	first := []standing{best}
	for _, s := range kept[1:] {
		if s.Ranked() && s.Low <= best.High {
			first = append(first, s)
		}
	}
	p99 := say("{0} ({1})", best.Median, best.Range)
	if len(first) > 1 {
		a.State, a.Choice = tied(), names(first)
		a.Text = join(pair(" ", ""), because(proof[best.Row]), say("Their p99 end to end overlap, so these trials give them no order; the lowest median is {0}.", p99))
		return
	}
	a.State, a.Choice = decided(), names(first)
	var claim text
	ranked := 0
	for _, s := range kept {
		if s.Ranked() {
			ranked++
			continue
		}
		a.Out = append(a.Out, say("{0} qualifies but is not ranked: {1}", nameOf(s), s.Why))
		// What was saturated at this rate is no rival; of the others nobody knows.
		if s.Cell == nil || s.Cell.Verdict != trial.VerdictSaturated {
			a.State = tied()
		}
	}
	switch {
	case len(kept) == 1:
		claim = say("It is the only one of its profile that qualifies; its p99 end to end is {0}.", p99)
	case ranked == 1:
		claim = say("Its p99 end to end, {0}, is the only one among those that qualify that can be ranked.", p99)
	default:
		claim = say("Its p99 end to end, {0}, is the lowest of those that qualify.", p99)
	}
	a.Text = join(pair(" ", ""), because(proof[best.Row]), claim)
}

// because opens the reason; a profile that promises nothing has none.
func because(proof text) text {
	if proof.Empty() {
		return text{}
	}
	return say("Because {0}.", proof)
}

func nameOf(s standing) text {
	if s.Cell != nil {
		return quote(s.Row.Setting()).at(s.Cell.ID)
	}
	return quote(s.Row.Setting())
}

// fewNames fit into the first word of an answer.
const fewNames = 4

func names(list []standing) text {
	var ts []text
	for _, s := range list {
		ts = append(ts, nameOf(s))
	}
	if more := len(ts) - fewNames; more > 1 {
		return say("{0} or one of {1} more", join(comma(), ts[:fewNames]...), calc(asCount, more, "settings"))
	}
	return join(say(" or "), ts...)
}

// blanks are settings about which nothing can be said, by the reason.
type blanks []struct {
	why   text
	names []text
}

func (b *blanks) add(name, why text) {
	for i := range *b {
		if (*b)[i].why.String() == why.String() {
			(*b)[i].names = append((*b)[i].names, name)
			return
		}
	}
	*b = append(*b, struct {
		why   text
		names []text
	}{why, []text{name}})
}

func (b blanks) texts() []text {
	var ts []text
	for _, one := range b {
		ts = append(ts, join(colon(), join(comma(), one.names...), one.why))
	}
	return ts
}

// reaches tell how old the oldest message was that a power cut took from those
// that survive a kill: from a moment to all of it, by when the broker syncs.
func reaches(list []standing) []text {
	var ts []text
	for _, s := range list {
		c := s.Row.crashed(powerLoss)
		if tried(c) && c.Lost > 0 && c.LossWindowMillis != nil {
			ts = append(ts, say("{0}: of {1} power cuts the worst took messages that were {2} old", quote(s.Row.Setting()).at(c.ID), c.count("valid", int64(c.Valid)), lossFigure(c)))
		}
	}
	return ts
}

// elsewhere tell what those that keep what their profile promises lost under
// other faults: a limit, a full disk, an operator's command.
func elsewhere(list []standing) []text {
	var ts []text
	for _, s := range list {
		for _, c := range s.Row.of(trial.TestFault) {
			if tried(c) && c.Lost > 0 && c.Fault != powerLoss {
				ts = append(ts, say("{0} lost messages all the same, {1}: {2}", quote(s.Row.Setting()).at(c.ID), faultTitle(c.Fault), lossText(c)))
			}
		}
	}
	return ts
}

// powerCut is what this result shows of cut power, and what it does not.
func (v *view) powerCut() text {
	n := 0
	for _, r := range v.rows {
		if tried(r.crashed(powerLoss)) {
			n++
		}
	}
	if n == 0 {
		return say("Killing a process is not cutting the power: what the disk had when the power went is read from the settings, not tested here.")
	}
	return many(int64(n), "Killing a process is not cutting the power: here the power was cut too, on {0} setting, and what the disk had not synced was gone. For the others it is read from their settings.",
		"Killing a process is not cutting the power: here the power was cut too, on {0} settings, and what the disk had not synced was gone. For the others it is read from their settings.", calc(asCount, n, "settings with a power cut"))
}
