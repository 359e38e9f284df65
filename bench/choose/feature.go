package choose

import (
	"fmt"
	"slices"

	"queuelab/bench/broker"
	"queuelab/bench/trial"
	"queuelab/queue"
)

// candidate is a setting under judgement.
type candidate struct {
	trial.Setting
	claims queue.Capabilities
	known  bool // what it claims
	needs  Needs
	e      *Evidence
}

func (e *Evidence) candidate(s trial.Setting, n Needs) *candidate {
	c := &candidate{Setting: s, needs: n, e: e}
	c.claims, c.known = e.Claims[s.String()]
	return c
}

// claimed judges by what the open queue says of itself.
func (c *candidate) claimed(has bool, field, yes, no string) Reason {
	switch {
	case !c.known:
		return Reason{Verdict: Unknown, Why: "what the open queue claims is not known"}
	case has:
		return Reason{Verdict: Yes, Why: yes, Proof: []Proof{claim(yes, field)}}
	}
	return Reason{Verdict: No, Why: no, Proof: []Proof{claim(no, field)}}
}

// unless lets a measured loss under a fault overrule a claim, and adds what was
// measured to the proof.
func (r Reason) unless(c *candidate, faults ...string) Reason {
	for _, f := range faults {
		m := c.e.worst(c.String(), f)
		if m == nil || r.Verdict != Yes {
			continue
		}
		r.Proof = append(r.Proof, m.lossProof())
		if m.Lost > 0 {
			r.Verdict, r.Why = No, "measured otherwise: "+m.lossProof().Value
		}
	}
	return r
}

func (c *candidate) durable() Reason {
	return c.claimed(c.claims.Durable, "Durable", "accepted messages survive kill -9 of the broker", "a killed broker forgets what it had accepted").unless(c, trial.FaultBrokerKill)
}

func (c *candidate) atLeastOnce() Reason {
	r := c.claimed(c.claims.Guarantee == queue.AtLeastOnce, "Guarantee", "only an ack removes", "delivering removes")
	if r.Verdict == Yes && c.claims.PopGap {
		return c.claimed(false, "PopGap", "", "a consumer that is killed just after it took a message loses it")
	}
	return r.unless(c, trial.FaultConsumerKillMidHandle, trial.FaultConsumerKillBeforeAck)
}

func (c *candidate) atMostOnce() Reason {
	r := c.claimed(c.claims.Guarantee == queue.AtMostOnce, "Guarantee", "delivering removes", "what is not acked comes again")
	if r.Verdict != Yes {
		return r
	}
	for _, m := range c.e.cells(c.String(), "", trial.TestCrash, trial.TestFault, trial.TestLatency) {
		if m.Redelivered > 0 {
			p := m.proof(fmt.Sprintf("%s deliveries came twice", thousands(m.Redelivered)), "")
			return Reason{Verdict: No, Why: "measured otherwise: " + p.Value, Proof: []Proof{p}}
		}
	}
	// A client that sends again by itself makes a second copy of what was delivered.
	for _, f := range []string{trial.FaultConsumerKillMidHandle, trial.FaultConsumerKillBeforeAck, "lost-reply-publish"} {
		row, err := c.e.expects(c.String(), f)
		if err == nil && !row.NotApplicable() && row.Redelivered != "0" && row.Redelivered != "any" {
			p := expected(row)
			p.Value = row.Why
			return Reason{Verdict: No, Why: "expected to come twice under " + f, Proof: []Proof{p}}
		}
	}
	return r
}

func (c *candidate) competing() Reason {
	return c.claimed(!c.claims.Broadcast, "Broadcast", "a message goes to one consumer", "every consumer gets every message")
}

func (c *candidate) broadcast() Reason {
	no := "a message goes to one consumer"
	if c.claims.Groups {
		no = "a message goes to one consumer of each group: a group for each consumer would do it, which is the need groups"
	}
	return c.claimed(c.claims.Broadcast, "Broadcast", "every consumer gets every message", no)
}

func (c *candidate) groups() Reason {
	return c.claimed(c.claims.Groups, "Groups", "each group gets everything", "there are no groups")
}

func (c *candidate) ordered() Reason {
	r := c.claimed(c.claims.OrderedPerKey, "OrderedPerKey", "one consumer sees a key's messages in order", "not even one consumer sees a key's messages in order")
	for _, m := range c.e.cells(c.String(), trial.FaultNone, trial.TestLatency, trial.TestCrash, trial.TestFault) {
		if m.Reordered > 0 && r.Verdict == Yes {
			p := m.proof(fmt.Sprintf("%d messages came after a later one of their key, without a fault", m.Reordered), "")
			return Reason{Verdict: No, Why: "measured otherwise: " + p.Value, Proof: []Proof{p}}
		}
	}
	// Where consumers share the work, order for one of them alone is none.
	if r.Verdict != Yes || c.claims.Broadcast || !c.needs.wants("competing") && !c.needs.wants("groups") {
		return r
	}
	f := factsOf(c.Backend)
	switch {
	case f.Order.What != "":
		r.Why = "a key's order holds although consumers compete"
		r.Proof = append(r.Proof, document(f.Order))
	case f.OrderBy.What != "":
		r.Verdict, r.Why = Unknown, f.OrderBy.What+" keeps it among competing consumers, but no setting here has it"
		r.Proof = append(r.Proof, document(f.OrderBy))
	default:
		r.Verdict, r.Why = No, "one consumer sees a key's messages in order, but several that compete handle them at once"
	}
	return r
}

func (c *candidate) replay() Reason {
	return c.claimed(c.claims.Replay, "Replay", "what was acked can be read again, as long as it is kept", "what was acked is gone")
}

func (c *candidate) delay() Reason {
	if f := factsOf(c.Backend).Delay; f.What != "" {
		return Reason{Verdict: Yes, Why: f.What, Proof: []Proof{document(f)}}
	}
	why := fact{"this backend delivers as soon as it can", "its package doc, which has no delay"}
	return Reason{Verdict: No, Why: why.What, Proof: []Proof{document(why)}}
}

func (c *candidate) routing() Reason {
	return c.claimed(c.claims.Routing, "Routing", "messages are routed by their key", "a consumer cannot ask for some keys only")
}

func (c *candidate) stored() Reason {
	if c.claims.Skips {
		return c.claimed(false, "Skips", "", "what comes while nobody receives is skipped")
	}
	return c.claimed(c.claims.Stored, "Stored", "messages wait for a consumer", "what nobody hears is gone")
}

func (c *candidate) bounded() Reason {
	if c.claims.DropsOldest {
		return c.claimed(false, "DropsOldest", "", "a full queue drops its oldest messages, accepted as they are")
	}
	return c.claimed(c.claims.Bounded, "Bounded", "a full queue blocks or rejects", "it grows until its broker is full")
}

func (c *candidate) nack() Reason {
	return c.claimed(c.claims.Nack, "Nack", "a delivery can be given back at once", "a delivery cannot be given back")
}

func (c *candidate) counted() Reason {
	return c.claimed(c.claims.Attempts == queue.CountedByBroker, "Attempts", "attempts are counted by the broker", "attempts are "+c.claims.Attempts.String())
}

func (c *candidate) fenced() Reason {
	return c.claimed(c.claims.LeaseFenced, "LeaseFenced", "a late ack is refused", "a late ack is not told from a good one")
}

func (c *candidate) shared() Reason {
	return c.claimed(c.claims.Shared, "Shared", "other processes can open it", "it lives in one process")
}

// Of what was accepted before the node died loses tells; this is whether it goes on.
func (c *candidate) cluster() Reason {
	f := factsOf(c.Backend).Cluster
	if !slices.Contains(broker.Clusters(), c.Broker) || f.What == "" {
		why := fact{"one node", "compose/" + c.Broker + ".yml"}
		if c.Broker == "" {
			why.Source = "package doc of backends/" + c.Backend
		}
		return Reason{Verdict: No, Why: "this setting is of one node", Proof: []Proof{document(why)}}
	}
	r := Reason{Verdict: Yes, Why: f.What, Proof: []Proof{document(f)}}
	if m := c.e.worst(c.String(), leaderKill); m != nil {
		r.Proof = append(r.Proof, m.lossProof())
	}
	return r
}

func (c *candidate) runs() Reason {
	on := noBroker
	if c.Broker != "" {
		on = family(c.Broker)
	}
	f := document(fact{"it is on " + on, "queuelab list"})
	if slices.Contains(c.needs.Only, on) {
		return Reason{Verdict: Yes, Why: f.Value, Proof: []Proof{f}}
	}
	return Reason{Verdict: No, Why: f.Value, Proof: []Proof{f}}
}
