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

// lossRange is the exact interval at 95 % of the chance that a crash loses.
func lossRange(c *viewCell) text {
	if l := c.Loss; l != nil {
		return say("95 % interval {0} – {1}", fig(asShare, l.Low, c.path("loss.low")), fig(asShare, l.High, c.path("loss.high")))
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

// decisive are the faults that a profile promises to survive, the one that
// tells it from the next weaker profile first.
func decisive(profile string) []string {
	switch profile {
	case trial.ProfileDiskSync, trial.ProfileDiskAsync:
		return []string{trial.FaultBrokerKill, trial.FaultConsumerKillMidHandle, trial.FaultConsumerKillBeforeAck}
	case trial.ProfileMemory:
		return []string{trial.FaultConsumerKillMidHandle, trial.FaultConsumerKillBeforeAck}
	}
	return nil
}

// verdictOn judges a row by the faults that its profile promises to survive,
// and by its sales. The cell is the one that decided; nil: there is none.
func verdictOn(r *row, profile string) (trust, *viewCell, text) {
	faults := decisive(profile)
	var first *viewCell
	for i, f := range faults {
		c := r.find(trial.TestCrash, f)
		if c == nil || !measured(c.Cell) || c.Valid <= 0 {
			if i == 0 {
				if c == nil {
					return untested, nil, say("{0} was not tested", faultTitle(f))
				}
				return untested, c, join(colon(), say("{0}: {1}", faultTitle(f), term(orDash(c.Verdict))), why(c))
			}
			continue
		}
		if c.Lost > 0 {
			return lossy, c, say("lost messages, {0}: {1}", faultTitle(f), lossText(c))
		}
		if i == 0 {
			first = c
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
