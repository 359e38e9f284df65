package report

import (
	"cmp"
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
	Meaning text
	rank    int // what is to be read first comes first
}

// marks lists the verdicts in the order in which they want to be read.
func marks() []mark {
	return []mark{
		{trial.VerdictContradiction, "✗", "bad", say("the measurement breaks what the oracle says must hold; one valid trial is enough"), 0},
		{trial.VerdictInvalid, "⊘", "invalid", say("no trial met its conditions (load held, victim busy, drained, every message accounted for): the numbers prove nothing"), 1},
		{trial.VerdictSaturated, "~", "warn", say("the offered rate was not held: the latency is that of a queue in front of the queue, never to be compared"), 2},
		{trial.VerdictOracleUpdate, "!", "warn", say("the measurement deviates from a row that was only deduced: first a finding about that row"), 3},
		{trial.VerdictNotReproduced, "?", "soft", say("the loss that can happen did not show in these trials; it is not thereby excluded"), 4},
		{trial.VerdictSkipped, "-", "none", say("not run; the reason stands beside it"), 5},
		{trial.VerdictAsExpected, "✓", "good", say("within the oracle's bound, computed from the facts of these trials"), 6},
		{trial.VerdictNotApplicable, "·", "none", say("this fault means nothing to this setting"), 7},
	}
}

func markOf(verdict string) mark {
	for _, m := range marks() {
		if m.Verdict == verdict {
			return m
		}
	}
	return mark{verdict, "?", "other", say("a verdict that this version does not know"), 1}
}

// knownLoss is what "as expected" looks like where what is expected is a loss:
// right about the oracle, and yet nothing to be green about.
func knownLoss() mark {
	return mark{"as expected, with loss", "✓", "known", say("the loss or the damage that this setting is known for, within its bound"), 6}
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
func faultTitle(fault string) text {
	switch fault {
	case trial.FaultNone:
		return say("no fault")
	case trial.FaultConsumerKillMidHandle:
		return say("consumer killed mid-handle")
	case trial.FaultConsumerKillBeforeAck:
		return say("consumer killed before ack")
	case trial.FaultBrokerKill:
		return say("broker killed")
	case trial.FaultServiceKill:
		return say("service killed")
	}
	if t, ok := faultTitles()[fault]; ok {
		return t
	}
	return quote(fault)
}

// excluded is the loss probability per trial, in percent, that n trials without
// a loss exclude at 95 %: exact and one-sided.
func excluded(n int) float64 { return 100 * (1 - math.Pow(0.05, 1/float64(n))) }

// bound says what this number of trials can and cannot show.
func bound(c *viewCell) text {
	if !measured(c.Cell) || c.Valid <= 0 {
		return text{}
	}
	n, none := c.count("valid", int64(c.Valid)), calc(asPercent, excluded(c.Valid), "excluded("+c.path("valid")+")")
	switch c.Test {
	case trial.TestCrash:
		if c.Lost > 0 {
			return many(c.Lost, "{0} message lost over {1} crashes: it can happen; how often is not bounded by a count of messages, since those of one crash fall together",
				"{0} messages lost over {1} crashes: it can happen; how often is not bounded by a count of messages, since those of one crash fall together", c.count("lost", c.Lost), n)
		}
		if c.Valid == 1 {
			return say("nothing lost in one crash: a probability above {0} per crash is excluded at 95 %, which is next to nothing; ask for more --trials", none)
		}
		return say("nothing lost in {0} crashes: a probability above {1} per crash is excluded at 95 %", n, none)
	case trial.TestSale:
		if c.Sale == nil {
			return text{}
		}
		if wrong(c.Sale) > 0 {
			return say("units or orders went wrong over {0} sales: it can happen; how often is not bounded by a count of orders, since those of one sale fall together", n)
		}
		if c.Valid == 1 {
			return say("nothing wrong in one sale: a probability above {0} per sale is excluded at 95 %, which is next to nothing; ask for more --trials", none)
		}
		return say("nothing wrong in {0} sales: a probability above {1} per sale is excluded at 95 %", n, none)
	}
	if c.Valid < fewestTrials {
		return many(int64(c.Valid), "{0} run: the spread between runs is unknown (an interval for a median needs 6), so close numbers have no order",
			"{0} runs: the spread between runs is unknown (an interval for a median needs 6), so close numbers have no order", n)
	}
	return text{}
}

// expectation is the oracle's row in words.
func expectation(c *viewCell) text {
	if c.Expected == nil {
		return say("no row in the oracle")
	}
	return say("lost {0}, again {1}", expectedLost(c), term(orDash(c.Expected.Redelivered)))
}

// expectedLost is the oracle's word, and its bound where that says more.
func expectedLost(c *viewCell) text {
	e := c.Expected
	if e.LostAtMost != nil && count(*e.LostAtMost) != e.Lost {
		return say("{0} (here at most {1})", term(orDash(e.Lost)), c.count("expected.lostAtMost", *e.LostAtMost))
	}
	return term(orDash(e.Lost))
}

// basis spells out how the oracle knows.
func basis(b string) text {
	switch b {
	case "V":
		return say("measured")
	case "S":
		return say("from a source")
	case "D":
		return say("deduced")
	}
	return quote(b)
}

func reasons(c *trial.Cell) string { return strings.Join(c.InvalidReasons, "; ") }

// why is what the harness wrote about a cell.
func why(c *viewCell) text { return harness(cmp.Or(reasons(c.Cell), c.Note)) }

// meaning is an entry of "what each number means".
type meaning struct{ Term, Text text }

func meanings() []meaning {
	return []meaning{
		{say("setting"), say("a queue, the client's knobs and the broker's durability together, as backend/setting; guarantees differ, so compare within one profile")},
		{say("profile"), say("what an accepted message survives at best; numbers are compared within one profile only")},
		{say("guarantee"), say("at most once: delivering removes, and a dead consumer loses what it held; at least once: only an ack removes, and what a dead consumer held comes again")},
		{say("confirmed by"), say("who had the message when a publish returned without an error: nobody, the queue's memory, the operating system (survives a kill, not a power cut), the disk, or replicas")},
		{say("latency"), say("open loop: every message is due at a planned time, and its latency counts from then, so that a stall is charged to all who waited; end to end is due to delivered, the response is due to accepted; a percentile that too few messages support is left out, and max is always there")},
		{say("from send"), say("the same latency counted from the actual send: a sender that was stalled did not send, and so did not measure; shown in grey for what the difference teaches")},
		{say("95 % interval"), say("median over the trials, with a bootstrap interval at 95 %; overlapping intervals share a rank, and a row that is too noisy has none")},
		{say("throughput"), say("closed loop: senders go as fast as answers come; it says how much fits through, not how long one message takes")},
		{say("lost"), say("accepted, without effect in the database, and nowhere to be found afterwards; summed over the valid trials, as every count is")},
		{say("again"), say("redelivered: deliveries beyond the first of one copy; harmless where effects are unique by message id, as they are in this shop")},
		{say("back after"), say("from the confirmed death to the next delivery of any message, or to the service being ready again; it includes starting the process that takes over, and what the dead one held may take longer, such as a lease or a session")},
		{say("n"), say("valid trials, of all where some were invalid; the unit is the crash or the sale, not the message, because messages of one crash fall together")},
		{say("sold / stock"), say("orders in the database against units for sale; oversold and undersold are units, waiting are buyers told \"queued\" who got no final answer, lost orders are buyers told \"queued\" without an order")},
		{say("harness floor"), say("the memory queue lives in the harness's process: its numbers are the cost of measuring, not a competitor")},
		{say("emulated"), say("a stand-in answered instead of the real broker: it shows that the path works and is never ranked")},
	}
}
