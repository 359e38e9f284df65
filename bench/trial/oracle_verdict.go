package trial

import (
	"fmt"
	"math"
	"strings"

	"queuelab/bench/ledger"
)

// excludedAbove is the exact one-sided bound at 95 %: when something showed in
// none of n independent trials, a probability above it is excluded. What is
// independent is the crash, however many messages were in it.
func excludedAbove(n int) float64 { return 1 - math.Pow(0.05, 1/float64(n)) }

func excludedNote(n int) string {
	return fmt.Sprintf("a probability above %.3g %% per trial is excluded at 95 %%", 100*excludedAbove(n))
}

// findings are the ways in which trials can differ from what they should show.
type findings struct {
	broken  []string // what no row allows: a fault of the queue, or of the lab
	wrong   []string // outside the row's bounds
	missing []string // the row's loss or redelivery did not show
}

// Verdict judges the counts of a cell, sums over its valid trials, against the
// oracle's row and the facts of the same trials. The note gives the reason, and
// what so many trials can and cannot bound. One deviation is enough for a
// contradiction, except from a row that was only deduced.
func Verdict(r Row, f Facts, c ledger.Counts, valid int) (verdict, note string) {
	switch {
	case r.NotApplicable():
		return VerdictNotApplicable, r.Why
	case valid <= 0:
		return VerdictInvalid, "no trial was valid"
	}
	var found findings
	found.always(f, c)
	if r.Fault == FaultNone {
		found.control(c)
	}
	b := r.Bounds(f)
	found.compare("lost", c.Lost, b.LostAtLeast, b.LostAtMost, expectsLoss(r.Lost))
	found.compare("redelivered", c.Redelivered, b.RedeliveredAtLeast, b.RedeliveredAtMost, strings.HasPrefix(r.Redelivered, "in-hand"))
	return found.verdict(r, valid, func() string {
		switch {
		case r.Lost == anything:
			return fmt.Sprintf("%d lost in %s, and nothing was promised", c.Lost, plural(valid, "trial"))
		case c.Lost > 0:
			return fmt.Sprintf("%d lost in %s, as the bound of %s says", c.Lost, plural(valid, "trial"), between(b.LostAtLeast, b.LostAtMost))
		}
		return fmt.Sprintf("0 lost in %s: %s", plural(valid, "trial"), excludedNote(valid))
	})
}

func (fs *findings) always(f Facts, c ledger.Counts) {
	for _, x := range []struct {
		n    int64
		what string
	}{
		{c.Phantom, "delivered that nobody sent"},
		{c.RejectedDelivered, "rejected, yet delivered"},
		{c.Stranded, "stranded in the queue"},
		{c.EffectDuplicates - c.Redelivered - c.ProducerDuplicates - f.Doubts, "effects more than deliveries, and commits without an answer, explain"},
	} {
		if x.n > 0 {
			fs.broken = append(fs.broken, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
}

// control is what a trial without a fault must not show, beside the row.
func (fs *findings) control(c ledger.Counts) {
	if c.ProducerDuplicates > 0 {
		fs.wrong = append(fs.wrong, fmt.Sprintf("%d producer duplicates without a fault", c.ProducerDuplicates))
	}
	if c.EffectDuplicates > 0 {
		fs.wrong = append(fs.wrong, fmt.Sprintf("%d effect duplicates without a fault", c.EffectDuplicates))
	}
}

// expectsLoss tells expressions that say what goes from those that only allow it.
func expectsLoss(expression string) bool {
	return expression != "0" && expression != "pops" && expression != "unusable" && expression != "unwritten" && expression != anything
}

func (fs *findings) compare(what string, got int64, least, most *int64, expected bool) {
	switch {
	case most == nil:
	case got > *most || got > 0 && got < *least:
		fs.wrong = append(fs.wrong, fmt.Sprintf("%d %s, expected %s", got, what, between(least, most)))
	case got == 0 && (*least > 0 || expected && *most > 0):
		fs.missing = append(fs.missing, fmt.Sprintf("0 %s, expected %s", what, between(least, most)))
	case expected && *most == 0:
		fs.missing = append(fs.missing, fmt.Sprintf("0 %s, since nothing was at stake when the fault struck", what))
	}
}

func (fs *findings) verdict(r Row, valid int, asExpected func() string) (string, string) {
	all := strings.Join(append(append(fs.broken, fs.wrong...), fs.missing...), "; ")
	switch {
	case len(fs.broken) > 0 || len(fs.wrong) > 0 && r.Basis != "D":
		return VerdictContradiction, all
	case len(fs.wrong) > 0:
		return VerdictOracleUpdate, all + ": the row was deduced, not measured"
	case len(fs.missing) > 0:
		return VerdictNotReproduced, fmt.Sprintf("%s in %s: %s", all, plural(valid, "trial"), excludedNote(valid))
	}
	return VerdictAsExpected, asExpected()
}

func between(least, most *int64) string {
	switch {
	case *least == *most:
		return fmt.Sprintf("exactly %d", *most)
	case *least == 0:
		return fmt.Sprintf("at most %d", *most)
	}
	return fmt.Sprintf("%d to %d", *least, *most)
}
