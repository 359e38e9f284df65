package choose

import (
	"fmt"
	"strings"

	"queuelab/bench/stat"
	"queuelab/bench/trial"
)

// Verdict is whether a need is met.
type Verdict string

const (
	Yes     Verdict = "yes"
	No      Verdict = "no"
	Unknown Verdict = "unknown" // which is never a yes
)

// Reason is what was found of one need on one setting.
type Reason struct {
	Need    string  `json:"need"`
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why"`
	Proof   []Proof `json:"proof"` // where that is from; empty where nothing is known
	// Measure is a command that would tell more; "": there is none.
	Measure string `json:"measure,omitempty"`
}

// The kinds of proof, the strongest first.
const (
	Measured = "measured" // a cell of a result
	Claimed  = "claimed"  // by the open queue, and held to it by the conformance suite
	Expected = "expected" // by a row of the oracle
	Document = "document" // nobody tried it here
)

// Proof is one thing that a reason rests on.
type Proof struct {
	Kind   string `json:"kind"`
	Value  string `json:"value"`
	Bound  string `json:"bound,omitempty"`  // what so many trials leave possible, at 95 %
	Result string `json:"result,omitempty"` // the result's file
	Cell   string `json:"cell,omitempty"`   // backend/setting test fault
	Trials int    `json:"trials,omitempty"` // valid ones
	Basis  string `json:"basis,omitempty"`  // the oracle's: V measured elsewhere, S from a source, D deduced
	Source string `json:"source,omitempty"` // of a claim, a row or a document

	fault string // of a row
}

// String is the proof in one line.
func (p Proof) String() string {
	s := p.Value
	if p.Bound != "" {
		s += ", " + p.Bound
	}
	switch p.Kind {
	case Measured:
		return fmt.Sprintf("measured: %s (%s, n=%d, %s)", s, p.Cell, p.Trials, p.Result)
	case Claimed:
		return fmt.Sprintf("claimed by the open queue: %s", s)
	case Expected:
		basis := map[string]string{"V": "measured by those who wrote it", "S": "from documents", "D": "deduced"}[p.Basis]
		return fmt.Sprintf("expected, %s: %s (%s)", basis, s, p.Source)
	}
	return fmt.Sprintf("document, not measured: %s (%s)", s, p.Source)
}

func claim(value, field string) Proof {
	return Proof{Kind: Claimed, Value: value, Source: "queue.Capabilities." + field}
}

func document(f fact) Proof { return Proof{Kind: Document, Value: f.What, Source: f.Source} }

func expected(r trial.Row) Proof {
	value := "loses " + lostWords(r.Lost)
	if r.NotApplicable() {
		value = "does not apply"
	}
	return Proof{Kind: Expected, Value: value + ": " + r.Why, Basis: r.Basis, Source: "bench/trial/oracle.csv, " + r.Setting + " " + r.Fault, fault: r.Fault}
}

// lostWords tells the oracle's column lost.
func lostWords(expression string) string {
	words := map[string]string{
		"0": "nothing", "any": "anything or nothing", "backlog": "all that waited", "recent": "what was not yet synced", "pops": "a pop whose reply was on its way",
		"in-hand": "what the consumer held", "buffer": "what its client had read ahead", "until resubscribed": "what nobody heard",
		"over": "what is beyond the limit", "events": "one for each time", "unwritten": "what was not yet written", "unusable": "a queue that does not come back",
	}
	var all []string
	for _, term := range strings.Split(expression, " + ") {
		if w, ok := words[term]; ok {
			term = w
		}
		all = append(all, term)
	}
	return strings.Join(all, ", ")
}

// proof is the cell as one.
func (m *measurement) proof(value, bound string) Proof {
	return Proof{Kind: Measured, Value: value, Bound: bound, Result: m.file, Cell: strings.Join([]string{m.Backend + "/" + m.Setting, m.Test, m.Fault}, " "), Trials: m.Valid}
}

// lossProof is what a cell's crashes lost.
func (m *measurement) lossProof() Proof {
	lossy := 0
	switch {
	case m.Loss != nil:
		lossy = m.Loss.Lossy
	case m.CrashesWithLoss != nil:
		lossy = *m.CrashesWithLoss
	case m.Lost > 0: // results from before it was counted
		return m.proof(fmt.Sprintf("%s lost under %s", thousands(m.Lost), m.Fault), "")
	}
	if lossy == 0 {
		return m.proof(fmt.Sprintf("0 of %d trials under %s lost something", m.Valid, m.Fault), fmt.Sprintf("above %s per trial excluded at 95 %%", percent(stat.NoneExcludes(m.Valid))))
	}
	low, high := stat.ClopperPearson(min(lossy, m.Valid), m.Valid)
	return m.proof(fmt.Sprintf("%d of %d trials under %s lost something, %s in all", lossy, m.Valid, m.Fault, thousands(m.Lost)), fmt.Sprintf("95 %% interval %s – %s", percent(low), percent(high)))
}

// weigh is a number over trials, and between what it lies; with fewer than six
// trials that is only the least and the greatest that were seen.
func weigh(i *trial.Interval, alone float64) (median, low, high float64) {
	if i == nil || i.N <= 0 {
		return alone, alone, alone
	}
	return i.Median, i.Low, i.High
}

// fewestTrials bound a median at 95 %.
const fewestTrials = 6

func boundOf(i *trial.Interval, show func(float64) string) string {
	switch {
	case i == nil || i.N <= 1:
		return "one trial, so without a bound"
	case i.N < fewestTrials:
		return fmt.Sprintf("%s – %s seen, too few for a bound", show(i.Low), show(i.High))
	}
	return fmt.Sprintf("95 %% interval %s – %s", show(i.Low), show(i.High))
}
