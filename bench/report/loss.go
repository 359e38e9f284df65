package report

import (
	"strings"

	"queuelab/bench/trial"
)

// fewestCrashes without a loss settle that a setting keeps its messages, as far
// as this report says so at all: with fewer, one crash in two could still lose.
const fewestCrashes = 6

// lossOf is a crash cell's loss by the crash. Results from before there was one
// tell only whether any crash lost something.
func lossOf(c *viewCell) (lossy, trials figure, known bool) {
	if c.Loss != nil {
		return c.count("loss.lossy", int64(c.Loss.Lossy)), c.count("loss.trials", int64(c.Loss.Trials)), true
	}
	trials = c.count("valid", int64(c.Valid))
	if c.Lost == 0 {
		return c.count("lost", 0), trials, true
	}
	return figure{}, trials, false
}

// lossText is "k of n crashes lost" with what that leaves possible.
func lossText(c *viewCell) text {
	lossy, trials, known := lossOf(c)
	if trials.Float() <= 0 || c.Fault == trial.FaultNone { // the control is no crash
		return text{}
	}
	if !known {
		return say("lost something in {0} crashes", trials)
	}
	return join(comma(), say("{0} of {1} crashes lost something", lossy, trials), lossRange(c))
}

// chance is the exact interval at 95 % of the chance that a crash loses, for
// under a head that says so.
func chance(c *viewCell) text {
	if l := c.Loss; l != nil {
		return concat(fig(asShare, l.Low, c.path("loss.low")).text(), raw(" – "), fig(asShare, l.High, c.path("loss.high")).text())
	}
	return lossRange(c)
}

// lossRange is that interval in a sentence.
func lossRange(c *viewCell) text {
	if c.Loss != nil {
		return say("95 % interval {0}", chance(c))
	}
	if c.Lost == 0 && c.Valid > 0 {
		return say("above {0} excluded", calc(asPercent, excluded(c.Valid), "excluded("+c.path("valid")+")"))
	}
	return text{}
}

// lossField sums the crash cells of a row: crashes that lost, of all.
func lossField(r *row) field {
	var lossy, trials int64
	var paths, all []string
	known := true
	for _, c := range r.of(trial.TestCrash) {
		if !measured(c.Cell) || c.Fault == trial.FaultNone {
			continue
		}
		k, n, ok := lossOf(c)
		known = known && ok
		lossy, trials = lossy+int64(k.Float()), trials+int64(n.Float())
		paths, all = append(paths, k.Src), append(all, n.Src)
	}
	if trials <= 0 {
		return nothing()
	}
	of := calc(asCount, trials, "sum("+strings.Join(all, ",")+")")
	if !known {
		return field{Text: say("some of {0}", of), Sort: 0.5, HasNum: true}
	}
	f := field{Text: say("{0} of {1}", calc(asCount, lossy, "sum("+strings.Join(paths, ",")+")"), of), Sort: float64(lossy) / float64(trials), HasNum: true}
	if lossy > 0 {
		f.Text = say("{0} ✗", f.Text)
	}
	return f
}

// trust is what the crashes and sales say about a row.
type trust int

const (
	untested trust = iota // nothing valid
	thin                  // nothing lost, in too few crashes
	sound                 // nothing lost, in enough of them
	lossy
)

// Faults of the crash lab that a promise is judged by.
const (
	powerLoss  = "power-loss"
	leaderKill = "leader-kill"
)

// decisive are the faults that a profile promises to survive. Of the first
// group at least one must have been tested: it tells the profile from the next
// weaker one, the stronger fault behind the weaker.
func decisive(profile string) [][]string {
	consumer := []string{trial.FaultConsumerKillMidHandle, trial.FaultConsumerKillBeforeAck}
	switch profile {
	case trial.ProfileDiskSync:
		return [][]string{{trial.FaultBrokerKill, leaderKill, powerLoss}, consumer}
	case trial.ProfileDiskAsync:
		return [][]string{{trial.FaultBrokerKill, leaderKill}, consumer}
	case trial.ProfileMemory:
		return [][]string{consumer[:1], consumer[1:]}
	}
	return nil
}

// crashed is the row's cell of a fault, of the first suites or of the crash lab,
// rather one with numbers; nil: it was not tested.
func (r *row) crashed(fault string) *viewCell {
	var found *viewCell
	for _, test := range []string{trial.TestCrash, trial.TestFault} {
		c := r.find(test, fault)
		if c != nil && (found == nil || !tried(found) && tried(c)) {
			found = c
		}
	}
	return found
}

// tried reports whether a cell has trials to be judged by.
func tried(c *viewCell) bool { return c != nil && measured(c.Cell) && c.Valid > 0 }

// verdictOn judges a row by the faults that its profile promises to survive,
// and by its sales. The cell is the one that decided; nil: there is none.
func verdictOn(r *row, profile string) (trust, *viewCell, text) {
	faults := decisive(profile)
	var first *viewCell
	for i, group := range faults {
		for _, f := range group {
			c := r.crashed(f)
			if !tried(c) {
				continue
			}
			if c.Lost > 0 {
				return lossy, c, say("lost messages, {0}: {1}", faultTitle(f), lossText(c))
			}
			if i == 0 {
				first = c
			}
		}
		if i == 0 && first == nil {
			return r.untested(group)
		}
	}
	for _, c := range r.of(trial.TestSale) {
		s := c.Sale
		if s == nil || !measured(c.Cell) || profile == trial.ProfileMemory && c.Fault != trial.FaultNone || len(faults) == 0 {
			continue
		}
		switch {
		case s.LostOrders > 0:
			return lossy, c, say("the sale lost {0} orders ({1})", c.count("sale.lostOrders", int64(s.LostOrders)), faultTitle(c.Fault))
		case s.Oversold > 0:
			return lossy, c, say("the sale oversold {0} ({1})", c.count("sale.oversold", int64(s.Oversold)), faultTitle(c.Fault))
		case s.Double > 0:
			return lossy, c, say("the sale gave {0} orders twice ({1})", c.count("sale.double", int64(s.Double)), faultTitle(c.Fault))
		}
	}
	if first == nil {
		return sound, nil, text{}
	}
	if _, n, _ := lossOf(first); n.Float() < fewestCrashes {
		return thin, first, join(colon(), faultTitle(first.Fault), lossText(first))
	}
	return sound, first, join(colon(), faultTitle(first.Fault), lossText(first))
}

// untested says why none of the faults has trials that count.
func (r *row) untested(faults []string) (trust, *viewCell, text) {
	for _, f := range faults {
		if c := r.crashed(f); c != nil {
			return untested, c, join(colon(), say("{0}: {1}", faultTitle(f), term(orDash(c.Verdict))), why(c))
		}
	}
	return untested, nil, say("{0} was not tested", faultTitle(faults[0]))
}
