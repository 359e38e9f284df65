package report

import (
	"fmt"
	"math"
	"strings"

	"queuelab/bench/trial"
)

// mark is how a verdict looks: a symbol beside every colour, since a colour
// alone does not reach everybody.
type mark struct {
	Verdict string
	Symbol  string // one column wide in every terminal
	Class   string // of CSS
	Meaning string
	rank    int // what is to be read first comes first
}

var unknownMark = mark{Symbol: "?", Class: "other", Meaning: "a verdict that this version does not know", rank: 1}

// marks lists the verdicts in the order in which they want to be read.
func marks() []mark {
	return []mark{
		{trial.VerdictContradiction, "✗", "bad", "the measurement breaks what the oracle says must hold; one valid trial is enough", 0},
		{trial.VerdictInvalid, "⊘", "invalid", "no trial met its conditions (load held, victim busy, drained, every message accounted for): the numbers prove nothing", 1},
		{trial.VerdictSaturated, "~", "warn", "the offered rate was not held: the latency is that of a queue in front of the queue, never to be compared", 2},
		{trial.VerdictOracleUpdate, "!", "warn", "the measurement deviates from a row that was only deduced: first a finding about that row", 3},
		{trial.VerdictNotReproduced, "?", "soft", "the loss that can happen did not show in these trials; it is not thereby excluded", 4},
		{trial.VerdictSkipped, "-", "none", "not run; the reason stands beside it", 5},
		{trial.VerdictAsExpected, "✓", "good", "within the oracle's bound, computed from the facts of these trials", 6},
		{trial.VerdictNotApplicable, "·", "none", "this fault means nothing to this setting", 7},
	}
}

func markOf(verdict string) mark {
	for _, m := range marks() {
		if m.Verdict == verdict {
			return m
		}
	}
	m := unknownMark
	m.Verdict = verdict
	return m
}

// knownLoss is what "as expected" looks like where what is expected is a loss:
// right about the oracle, and yet nothing to be green about.
func knownLoss() mark {
	return mark{"as expected, with loss", "✓", "known", "the loss or the damage that this setting is known for, within its bound", 6}
}

// cellMark is the mark of a cell in a table of outcomes.
func cellMark(c *trial.Cell) mark {
	if c.Verdict == trial.VerdictAsExpected && (c.Lost > 0 || c.Sale != nil && wrong(c.Sale) > 0) {
		return knownLoss()
	}
	return markOf(c.Verdict)
}

// wrong counts the units and orders of a sale that are not as they should be.
func wrong(s *trial.Sale) int64 {
	return int64(s.Oversold) + int64(s.Undersold) + int64(s.Double) + int64(s.Waiting) + int64(s.LostOrders)
}

// measured reports whether a cell's numbers may be read as numbers.
func measured(c *trial.Cell) bool {
	switch c.Verdict {
	case trial.VerdictInvalid, trial.VerdictSkipped, trial.VerdictNotApplicable:
		return false
	}
	return true
}

// faultTitle names a fault for a column's head.
func faultTitle(fault string) string {
	switch fault {
	case trial.FaultNone:
		return "no fault"
	case trial.FaultConsumerKillMidHandle:
		return "consumer killed mid-handle"
	case trial.FaultConsumerKillBeforeAck:
		return "consumer killed before ack"
	case trial.FaultBrokerKill:
		return "broker killed"
	case trial.FaultServiceKill:
		return "service killed"
	}
	return fault
}

// excluded is the loss probability per trial, in percent, that n trials without
// a loss exclude at 95 %: exact and one-sided.
func excluded(n int) float64 { return 100 * (1 - math.Pow(0.05, 1/float64(n))) }

// bound says what this number of trials can and cannot show.
func bound(c *trial.Cell) string {
	if !measured(c) || c.Valid <= 0 {
		return ""
	}
	switch c.Test {
	case trial.TestCrash:
		return boundOf(c.Valid, "crash", "crashes", c.Lost, "message lost", "messages lost")
	case trial.TestSale:
		if c.Sale == nil {
			return ""
		}
		return boundOf(c.Valid, "sale", "sales", wrong(c.Sale), "unit or order wrong", "units or orders wrong")
	}
	if c.Valid < 6 {
		return fmt.Sprintf("%s: the spread between runs is unknown (an interval for a median needs 6), so close numbers have no order", plural(int64(c.Valid), "run", "runs"))
	}
	return ""
}

func boundOf(n int, one, many string, bad int64, badOne, badMany string) string {
	runs := plural(int64(n), one, many)
	if bad > 0 {
		return fmt.Sprintf("%s over %s: it can happen; how often is not bounded by a count of messages, since those of one %s fall together", plural(bad, badOne, badMany), runs, one)
	}
	s := fmt.Sprintf("none wrong in %s: a probability above %s %% per %s is excluded at 95 %%", runs, brief(excluded(n)), one)
	if n == 1 {
		s += ", which is next to nothing; ask for more --trials"
	}
	return s
}

// expectation is the oracle's row in words.
func expectation(e *trial.Expected) string {
	if e == nil {
		return "no row in the oracle"
	}
	return "lost " + expectedLost(e) + ", again " + orDash(e.Redelivered)
}

// expectedLost is the oracle's word, and its bound where that says more.
func expectedLost(e *trial.Expected) string {
	s := orDash(e.Lost)
	if e.LostAtMost != nil && count(*e.LostAtMost) != e.Lost {
		s += " (here at most " + count(*e.LostAtMost) + ")"
	}
	return s
}

// basis spells out how the oracle knows.
func basis(b string) string {
	switch b {
	case "V":
		return "measured"
	case "S":
		return "from a source"
	case "D":
		return "deduced"
	}
	return b
}

func reasons(c *trial.Cell) string { return strings.Join(c.InvalidReasons, "; ") }

// meaning is an entry of "what each number means".
type meaning struct{ Term, Text string }

func meanings() []meaning {
	return []meaning{
		{"setting", "a queue, the client's knobs and the broker's durability together, as backend/setting; guarantees differ, so compare within one guarantee first"},
		{"guarantee", "at most once: delivering removes, and a dead consumer loses what it held; at least once: only an ack removes, and what a dead consumer held comes again"},
		{"confirmed by", "who had the message when a publish returned without an error: nobody, the queue's memory, the operating system (survives a kill, not a power cut), the disk, or replicas"},
		{"latency", "open loop: every message is due at a planned time, and its latency counts from then, so that a stall is charged to all who waited; end to end is due to delivered, publish is due to accepted; a percentile that too few messages support is left out, and max is always there"},
		{"throughput", "closed loop: senders go as fast as answers come; it says how much fits through, not how long one message takes"},
		{"lost", "accepted, without effect in the database, and nowhere to be found afterwards; summed over the valid trials, as every count is"},
		{"again", "redelivered: deliveries beyond the first of one copy; harmless where effects are unique by message id, as they are in this shop"},
		{"back after", "from the confirmed death to the next delivery of any message, or to the service being ready again; it includes starting the process that takes over, and what the dead one held may take longer, such as a lease or a session"},
		{"n", "valid trials, of all where some were invalid; the unit is the crash or the sale, not the message, because messages of one crash fall together"},
		{"sold / stock", "orders in the database against units for sale; oversold and undersold are units, waiting are buyers told \"queued\" who got no final answer, lost orders are buyers told \"queued\" without an order"},
		{"harness floor", "the memory queue lives in the harness's process: its numbers are the cost of measuring, not a competitor"},
		{"emulated", "a stand-in answered instead of the real broker: it shows that the path works and is never ranked"},
	}
}
