// Package choose goes from needs to a ranked list of settings. Each of its reasons
// says where it is from: a measured cell, what the open queue claims, a row of the
// oracle, or a document. What is not known is never a yes.
package choose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/near"
)

// What an accepted message must survive, by its name in Needs.Loses. Each asks for
// what the one before it asks for, and more.
const (
	MayLose            = "may-lose"
	NothingOnCrash     = "nothing-on-crash"      // no message when processes die, broker and consumer alike
	NothingOnPowerLoss = "nothing-on-power-loss" // nor when the power of their machine goes
)

// Needs is what somebody wants of a queue. The zero value wants nothing.
type Needs struct {
	Must    []string      `json:"must,omitempty"`    // names of Features
	Loses   string        `json:"loses,omitempty"`   // "" is not asked, as MayLose
	Groups  int           `json:"groups,omitempty"`  // readers that each get everything
	Rate    float64       `json:"rate,omitempty"`    // messages a second
	Backlog int64         `json:"backlog,omitempty"` // messages that must be able to wait
	P99     time.Duration `json:"p99,omitempty"`     // end to end, in nanoseconds
	Only    []string      `json:"only,omitempty"`    // brokers, as in Brokers; empty: any
}

// Feature is a need that has a name.
type Feature struct {
	Name string
	What string // one line for people

	judge func(*candidate) Reason
}

// Features lists them, in the order in which they are told.
func Features() []Feature {
	return []Feature{
		{"durable", "what was accepted survives a killed broker", (*candidate).durable},
		{"at-least-once", "what a dead consumer held comes again", (*candidate).atLeastOnce},
		{"at-most-once", "nothing comes twice, rather is it lost", (*candidate).atMostOnce},
		{"competing", "consumers share the work: each message goes to one of them", (*candidate).competing},
		{"broadcast", "every consumer gets every message, and nothing is set up for it", (*candidate).broadcast},
		{"groups", "each group gets every message, and the consumers of a group share them", (*candidate).groups},
		{"ordered-per-key", "the messages of a key come in the order of their publishing", (*candidate).ordered},
		{"replay", "what was read and acked can be read again", (*candidate).replay},
		{"delay", "a message is delivered only after a while that its publisher chose", (*candidate).delay},
		{"routing", "a consumer may ask for some keys only", (*candidate).routing},
		{"stored", "messages wait for a consumer that is not there yet", (*candidate).stored},
		{"bounded", "a full queue says so, instead of growing or of dropping what was accepted", (*candidate).bounded},
		{"nack", "a consumer can give a message back at once", (*candidate).nack},
		{"counted", "the broker counts attempts, so that a poison message is found though its handler died", (*candidate).counted},
		{"fenced", "the late ack of a consumer that lost its message is refused", (*candidate).fenced},
		{"shared", "several processes use one queue", (*candidate).shared},
		{"cluster", "it goes on when a node is dead", (*candidate).cluster},
	}
}

// Brokers lists what Only can name. "none" is the queue in the process.
func Brokers() []string { return append(broker.Kinds(), noBroker) }

const noBroker = "none"

// Limits beyond which a number is a slip of the hand.
const (
	mostRate    = 1e7
	mostBacklog = 1e12
	mostGroups  = 1000
	mostP99     = time.Hour
)

// Contradiction is an error about needs that no queue at all could meet together.
type Contradiction struct {
	Needs []string
	Why   string
}

func (c *Contradiction) Error() string {
	return fmt.Sprintf("%s contradict each other: %s", strings.Join(c.Needs, " and "), c.Why)
}

// Check says what cannot be meant: a word that is unknown, a number beyond reason,
// no need at all, or a *Contradiction.
func (n Needs) Check() error {
	for _, name := range n.Must {
		if !slices.ContainsFunc(Features(), func(f Feature) bool { return f.Name == name }) {
			return fmt.Errorf("unknown need %q: did you mean %q? There are %s", name, nearest(name, featureNames()), strings.Join(featureNames(), ", "))
		}
	}
	for _, name := range n.Only {
		if !slices.Contains(Brokers(), name) {
			return fmt.Errorf("unknown broker %q: did you mean %q? There are %s", name, nearest(name, Brokers()), strings.Join(Brokers(), ", "))
		}
	}
	if losses := []string{"", MayLose, NothingOnCrash, NothingOnPowerLoss}; !slices.Contains(losses, n.Loses) {
		return fmt.Errorf("loses %q: want %s", n.Loses, strings.Join(losses[1:], ", "))
	}
	switch {
	case !(n.Rate >= 0 && n.Rate <= mostRate): // NaN is neither
		return fmt.Errorf("a rate of %v: want 0 to %.0f messages a second", n.Rate, float64(mostRate))
	case n.Backlog < 0 || n.Backlog > mostBacklog:
		return fmt.Errorf("a backlog of %d: want 0 to %.0f messages", n.Backlog, float64(mostBacklog))
	case n.Groups < 0 || n.Groups > mostGroups:
		return fmt.Errorf("%d groups: want 0 to %d", n.Groups, mostGroups)
	case n.P99 < 0 || n.P99 > mostP99:
		return fmt.Errorf("a p99 of %v: want 0s to %v", n.P99, mostP99)
	case len(n.items()) == 0 && n.Loses == "":
		return fmt.Errorf("nothing is needed: say what is, as with --need durable,competing or --loses %s", NothingOnPowerLoss)
	}
	return n.contradiction()
}

// contradiction finds needs of which one is the other's opposite, whatever queues
// there are. What merely no queue here has is found by Choose.
func (n Needs) contradiction() error {
	against := func(a, b, why string) error {
		if n.wants(a) && n.wants(b) {
			return &Contradiction{[]string{a, b}, why}
		}
		return nil
	}
	const lost = "at most once means that what a dead consumer held is lost"
	return cmp.Or(
		against("competing", "broadcast", `one message goes to one consumer, or to all of them; "groups" gives it to each group, and to one consumer of it`),
		against("groups", "broadcast", `with groups a message goes to one consumer of each; "broadcast" is for consumers that have no group`),
		against("at-most-once", "at-least-once", "when a consumer dies with a message in hand it either comes again or does not"),
		against("at-most-once", NothingOnCrash, lost),
		against("at-most-once", NothingOnPowerLoss, lost),
	)
}

// wants reports whether a feature, or a loss, is asked for.
func (n Needs) wants(name string) bool {
	return slices.Contains(n.Must, name) || n.Loses == name || name == "groups" && n.Groups > 1
}

// need is one thing that is asked for: its name as it is told, and its judge.
type need struct {
	Name  string
	judge func(*candidate) Reason
	// drop returns the needs without this one.
	drop func(Needs) Needs
}

// items are the needs one by one, each once, in the order of Features. That
// anything may be lost is not one of them.
func (n Needs) items() []need {
	var all []need
	for _, f := range Features() {
		if slices.Contains(n.Must, f.Name) {
			all = append(all, need{f.Name, f.judge, func(n Needs) Needs {
				n.Must = slices.DeleteFunc(slices.Clone(n.Must), func(s string) bool { return s == f.Name })
				return n
			}})
		}
	}
	if n.Groups > 1 {
		all = append(all, need{fmt.Sprintf("%d groups", n.Groups), (*candidate).groups, func(n Needs) Needs { n.Groups = 0; return n }})
	}
	if n.Loses == NothingOnCrash || n.Loses == NothingOnPowerLoss {
		all = append(all, need{"loses " + n.Loses, (*candidate).keeps, func(n Needs) Needs { n.Loses = MayLose; return n }})
	}
	if n.Rate > 0 {
		all = append(all, need{"rate " + perSecond(n.Rate), (*candidate).holdsRate, func(n Needs) Needs { n.Rate = 0; return n }})
	}
	if n.P99 > 0 {
		all = append(all, need{"p99 " + n.P99.String(), (*candidate).fastEnough, func(n Needs) Needs { n.P99 = 0; return n }})
	}
	if n.Backlog > 0 {
		all = append(all, need{"backlog " + thousands(n.Backlog), (*candidate).holdsBacklog, func(n Needs) Needs { n.Backlog = 0; return n }})
	}
	if len(n.Only) > 0 {
		all = append(all, need{"only " + strings.Join(n.Only, ", "), (*candidate).runs, func(n Needs) Needs { n.Only = nil; return n }})
	}
	return all
}

func featureNames() []string {
	var names []string
	for _, f := range Features() {
		names = append(names, f.Name)
	}
	return names
}

// nearest is the name that differs from a word in the fewest letters.
func nearest(word string, names []string) string {
	best, least := "", math.MaxInt
	for _, name := range names {
		if d := near.Distance(strings.ToLower(word), name); d < least {
			best, least = name, d
		}
	}
	return best
}
