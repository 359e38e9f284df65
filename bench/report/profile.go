package report

import (
	"slices"

	"queuelab/bench/trial"
)

// group is the settings of one profile. Numbers are compared within one only,
// so every table and every chart is of one group.
type group struct {
	Profile string
	Rows    []*row
}

// groups are the profiles that the result has, the strongest first.
func (v *view) groups() []group {
	var names []string
	for _, r := range v.rows {
		if !slices.Contains(names, r.Profile) {
			names = append(names, r.Profile)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return profileOrder(a) - profileOrder(b) })
	var out []group
	for _, name := range names {
		g := group{Profile: name}
		for _, r := range v.rows {
			if r.Profile == name {
				g.Rows = append(g.Rows, r)
			}
		}
		out = append(out, g)
	}
	return out
}

func profileOrder(p string) int {
	if p == "" {
		return len(trial.Profiles()) + 1
	}
	return indexOr(trial.Profiles(), p)
}

// Title is the profile with what it promises.
func (g group) Title() text {
	switch g.Profile {
	case trial.ProfileDiskSync:
		return say("disk-sync: synced to disk before it is confirmed")
	case trial.ProfileDiskAsync:
		return say("disk-async: a killed broker keeps it, a power cut may lose what was not synced")
	case trial.ProfileMemory:
		return say("memory: acked by the consumer, but a killed broker loses it")
	case trial.ProfileAtMostOnce:
		return say("at-most-once: delivered once or not at all, or never confirmed")
	case "":
		return say("profile not recorded")
	}
	return quote(g.Profile)
}

// Short is the profile's name.
func (g group) Short() text {
	if g.Profile == "" {
		return say("profile not recorded")
	}
	return raw(g.Profile)
}

// Slug is the profile in an address.
func (g group) Slug() string { return slug(g.Profile)[len("cell-"):] }

// competitors are the rows that a ranking may hold.
func (g group) competitors() []*row {
	var out []*row
	for _, r := range g.Rows {
		if !r.Unranked() {
			out = append(out, r)
		}
	}
	return out
}

// of is the part of a grid that belongs to the group.
func (g group) of(whole grid) grid {
	part := whole
	part.Name += "-" + g.Slug()
	part.Lines = nil
	for _, l := range whole.Lines {
		if slices.Contains(g.Rows, l.Row) {
			part.Lines = append(part.Lines, l)
		}
	}
	return part
}

// section is one profile's part of a chapter.
type section struct {
	Group  group
	Grid   grid
	Folded grid // opened by those who want every point
	Plots  []plot
	Chart  *chart
}

// sections splits a grid by profile; profiles without a line are left out.
func (v *view) sections(whole grid) []section {
	var out []section
	for _, g := range v.groups() {
		if part := g.of(whole); len(part.Lines) > 0 {
			out = append(out, section{Group: g, Grid: part})
		}
	}
	return out
}

// folded is sections of a grid that opens, under one that is open already.
func (v *view) folded(open, shut grid) []section {
	var out []section
	for _, g := range v.groups() {
		s := section{Group: g, Grid: g.of(open), Folded: g.of(shut)}
		if len(s.Grid.Lines)+len(s.Folded.Lines) > 0 {
			out = append(out, s)
		}
	}
	return out
}
