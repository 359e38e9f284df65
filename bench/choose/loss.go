package choose

import (
	"fmt"
	"slices"
	"strings"

	"queuelab/bench/broker"
	"queuelab/bench/fault"
	"queuelab/bench/trial"
	"queuelab/queue"
)

// The crash lab's names of the faults that a loss is judged by, beside trial's.
const (
	powerLoss  = "power-loss"
	slowFsync  = "slow-fsync"
	leaderKill = "leader-kill"
)

// keeps judges whether nothing that was accepted is lost when processes die, or
// when the power goes as well. A power cut kills consumers too, so it asks for both.
func (c *candidate) keeps() Reason {
	if !c.known {
		return Reason{Verdict: Unknown, Why: "what the open queue claims is not known"}
	}
	if why, field := c.lossy(); why != "" {
		return Reason{Verdict: No, Why: why, Proof: []Proof{claim(why, field)}}
	}
	must := []string{trial.FaultConsumerKillMidHandle, trial.FaultConsumerKillBeforeAck, trial.FaultBrokerKill}
	if slices.Contains(broker.Clusters(), c.Broker) {
		must = append(must, leaderKill)
	}
	var all []Reason
	if c.needs.Loses == NothingOnPowerLoss {
		must = append([]string{powerLoss}, must...)
		if c.claims.Confirm < queue.ConfirmDisk {
			why := fmt.Sprintf("accepted once the %s has it, which a power cut takes", c.claims.Confirm)
			all = append(all, Reason{Verdict: No, Why: why, Proof: []Proof{claim(why, "Confirm")}})
		}
	}
	for _, f := range must {
		r, _ := c.survives(f)
		all = append(all, r)
	}
	// Deaths of processes that few settings were tried under: what is known counts,
	// and where nothing is, the rest decides.
	for _, f := range []string{slowFsync, "producer-kill", "broker-stop", "out-of-memory", "consumer-kill-on-receive", "consumer-kill-after-ack", "consumer-kill-slow-handler"} {
		if r, blank := c.survives(f); !blank && r.Verdict != Yes {
			all = append(all, r)
		}
	}
	return worstOf(all)
}

// worstOf is the verdict of several reasons that must all hold, with the proofs of
// those that decide.
func worstOf(all []Reason) Reason {
	for _, v := range []Verdict{No, Unknown} {
		var whys []string
		out := Reason{Verdict: v}
		for _, r := range all {
			if r.Verdict != v {
				continue
			}
			whys = append(whys, r.Why)
			out.Proof = append(out.Proof, r.Proof...)
			if out.Measure == "" {
				out.Measure = r.Measure
			}
		}
		if len(whys) > 0 {
			out.Why = strings.Join(whys, "; ")
			return out
		}
	}
	out := Reason{Verdict: Yes}
	var whys []string
	for _, r := range all {
		whys = append(whys, r.Why)
		out.Proof = append(out.Proof, r.Proof...)
	}
	out.Why = strings.Join(whys, "; ")
	return out
}

// lossy is why a message can be lost by one killed process, or by a backlog, by
// what the open queue says; "": it says that it cannot.
func (c *candidate) lossy() (why, field string) {
	q := c.claims
	switch {
	case !q.Lossy():
		return "", ""
	case q.Guarantee == queue.AtMostOnce:
		return "at most once: what a dead consumer held is lost", "Guarantee"
	case q.PopGap:
		return "a consumer that is killed just after it took a message loses it", "PopGap"
	case q.DropsOldest:
		return "a full queue drops its oldest messages, accepted as they are", "DropsOldest"
	case q.Confirm == queue.ConfirmNone:
		return "nobody answers the publisher, so nothing is promised", "Confirm"
	case q.Confirm == queue.ConfirmMemory:
		return "accepted into the broker's memory, which dies with it", "Confirm"
	}
	return "a killed broker forgets what it had accepted", "Durable"
}

// worst is the cell that a setting's loss under a fault is told by: the first that
// lost something, or else that of the most trials; nil: it was not tried.
func (e *Evidence) worst(setting, fault string) *measurement {
	var best *measurement
	for _, m := range e.cells(setting, fault, trial.TestCrash, trial.TestFault) {
		if m.Lost > 0 {
			return m
		}
		if best == nil || m.Valid > best.Valid {
			best = m
		}
	}
	return best
}

// survives judges one fault. A loss that was measured decides; where none was, the
// oracle must not expect one, and must have said so beforehand or the trials be
// enough. blank is that nobody knows anything.
func (c *candidate) survives(f string) (r Reason, blank bool) {
	row, err := c.e.expects(c.String(), f)
	if err != nil {
		return Reason{Verdict: Unknown, Why: err.Error()}, true
	}
	m := c.e.worst(c.String(), f)
	switch {
	case m != nil && m.Lost > 0:
		return Reason{Verdict: No, Why: "loses messages under " + f, Proof: []Proof{m.lossProof()}}, false
	case row.NotApplicable():
		return Reason{Verdict: Yes, Why: f + " means nothing to it", Proof: []Proof{expected(row)}}, false
	case row.Lost == "any":
		return c.untold(f, row, m)
	case row.Lost != "0" && m == nil:
		return Reason{Verdict: No, Why: "expected to lose messages under " + f, Proof: []Proof{expected(row)}}, false
	case row.Lost != "0":
		return Reason{Verdict: Unknown, Why: fmt.Sprintf("under %s a loss is expected that did not show in %d trials", f, m.Valid), Proof: []Proof{m.lossProof(), expected(row)}, Measure: c.measure(f)}, false
	case m == nil:
		return Reason{Verdict: Yes, Why: "nothing expected to be lost under " + f + ", which was not tried", Proof: []Proof{expected(row)}}, false
	case m.Verdict == trial.VerdictContradiction:
		return Reason{Verdict: Unknown, Why: fmt.Sprintf("under %s something is wrong: %s", f, m.Note), Proof: []Proof{m.lossProof()}, Measure: c.measure(f)}, false
	}
	r = Reason{Verdict: Yes, Why: "nothing lost under " + f, Proof: []Proof{m.lossProof()}}
	if m.Valid < enough(f) {
		r.Proof = append(r.Proof, expected(row))
	}
	return r, false
}

// untold judges a fault whose outcome the oracle does not foretell.
func (c *candidate) untold(f string, row trial.Row, m *measurement) (r Reason, blank bool) {
	r = Reason{Verdict: Unknown, Why: "what it loses under " + f + " is not known", Proof: []Proof{}, Measure: c.measure(f)}
	if m != nil && m.Valid >= enough(f) && m.Verdict != trial.VerdictContradiction {
		return Reason{Verdict: Yes, Why: "nothing lost under " + f, Proof: []Proof{m.lossProof()}}, false
	}
	// A message is as safe as the Redis that it is in, whatever the structure.
	if twin := "redis-streams/" + c.Conf; c.Broker == "redis" && twin != c.String() && slices.Contains([]string{powerLoss, slowFsync}, f) {
		for _, s := range c.e.Settings {
			if s.String() != twin {
				continue
			}
			if t, _ := c.e.candidate(s, c.needs).survives(f); t.Verdict == No {
				t.Why = fmt.Sprintf("deduced from %s, on the same Redis: %s", twin, t.Why)
				return t, false
			}
		}
	}
	if m == nil {
		if r.Measure == "" {
			r.Why += ", and this lab cannot do that to a cluster"
		}
		return r, true
	}
	r.Why = fmt.Sprintf("%d trials under %s lost nothing, and %d are the least that say anything", m.Valid, f, enough(f))
	r.Proof = []Proof{m.lossProof()}
	return r, false
}

// enough trials without a loss settle that there is none, as far as that goes:
// fewer where a named place makes the outcome certain.
func enough(name string) int {
	if f, ok := fault.Lookup(name); ok && f.Trials > 0 {
		return min(f.Trials, fewestTrials)
	}
	return fewestTrials
}

// measure is the command that would tell what a fault does to the setting; "": the
// lab cannot do it to a cluster.
func (c *candidate) measure(name string) string {
	if f, ok := fault.Lookup(name); ok && f.Storage && slices.Contains(broker.Clusters(), c.Broker) {
		return ""
	}
	return measureFault(name, c.String())
}

func measureFault(fault string, settings ...string) string {
	return fmt.Sprintf("queuelab faults run --faults %s --settings %s", fault, strings.Join(settings, ","))
}
