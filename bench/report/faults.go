package report

import (
	"math"

	"queuelab/bench/trial"
)

// faultsGrid is the crash lab's table: fault by fault, expected against measured.
func (v *view) faultsGrid() grid {
	g := grid{Name: "faults", Title: say("The crash lab: expected against measured"), Columns: []column{
		col("fault", false), col("setting", false), col("crashes with loss", true), col("95 % interval", false), col("expected lost", false), col("lost", true), col("again", true),
		col("oldest loss", true), col("a mere kill", true), col("verdict", false), {Key: note, Title: say("why")},
	}}
	for _, f := range v.faults(trial.TestFault) {
		for _, r := range v.rows {
			c := r.find(trial.TestFault, f)
			if c == nil {
				continue
			}
			verdict := verdictField(c).marked(c)
			if !measured(c.Cell) {
				g.Lines = append(g.Lines, line{Row: r, Cell: c, Fields: []field{words(faultTitle(f)), settingField(r), nothing(), nothing(), nothing(), nothing(), nothing(), nothing(), nothing(), verdict, words(harness(c.Note))}})
				continue
			}
			oldest, kill, expected, because := nothing(), nothing(), nothing(), text{}
			if w := c.LossWindowMillis; w != nil {
				oldest = number(fig(asMillis, w.Max, c.path("lossWindowMillis.max")), c.ID)
			}
			if c.DirtyBytes != nil && *c.DirtyBytes > 0 && c.CrashUnknown == 0 {
				kill = number(c.count("crashLost", c.CrashLost), c.ID)
			}
			if e := c.Expected; e != nil {
				expected, because = words(expectedLost(c)), term(e.Why)
			}
			if c.Verdict != trial.VerdictAsExpected {
				because = harness(c.Note)
			}
			lossy, trials, _ := lossOf(c)
			g.Lines = append(g.Lines, line{Row: r, Cell: c, Fields: []field{
				words(faultTitle(f)), settingField(r), {Text: say("{0} of {1}", lossy, trials), Sort: lossy.Float() / math.Max(1, trials.Float()), HasNum: true},
				words(chance(c)), expected, number(c.count("lost", c.Lost), c.ID), number(c.count("redelivered", c.Redelivered), c.ID), oldest, kill, verdict, words(because),
			}})
		}
	}
	return g
}
