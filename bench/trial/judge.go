package trial

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"queuelab/bench/ledger"
	"queuelab/bench/load"
	"queuelab/queue"
)

// records merges the ledgers of a trial's processes, living and dead.
func (t *crashTrial) records() ([]ledger.Record, error) {
	paths, err := filepath.Glob(t.lab.ledgerPattern(t.trial))
	if err != nil {
		return nil, err
	}
	return ledger.Read(paths...)
}

// drain waits until the queue is empty and nothing has moved for a while. A
// queue that does not run dry in time strands what is in it: that is a finding,
// not an error.
func (t *crashTrial) drain(ctx context.Context) error {
	// stuck is longer than any lease of a crash trial: what has not moved by
	// then is not going to.
	const deadline, stuck = 90 * time.Second, 8 * time.Second
	began := time.Now()
	moved, last := time.Now(), -1
	for {
		records, err := t.records()
		if err != nil {
			return err
		}
		if len(records) != last {
			moved, last = time.Now(), len(records)
		}
		backlog, err := t.backlog(ctx)
		if err != nil {
			return err
		}
		// Where the queue does not tell, nothing moving is all there is to see.
		quiet := 700 * time.Millisecond
		if backlog < 0 || strings.HasPrefix(t.spec.Setting.Broker, "rabbitmq") {
			quiet = 1500 * time.Millisecond
		}
		switch {
		case backlog <= 0 && time.Since(moved) > quiet:
			return nil
		case time.Since(began) > deadline || backlog > 0 && time.Since(moved) > stuck:
			t.stranded, t.left = true, backlog
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// judge draws the verdicts of a trial that is over.
func (t *crashTrial) judge(ctx context.Context) (*measured, error) {
	records, err := t.records()
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	effects, err := t.effects.Count(ctx, t.trial)
	if err != nil {
		return nil, err
	}
	in := t.input(records, effects)
	if t.stranded {
		in.Remaining = remaining(ledger.Account(in).LostIDs, t.left)
	}
	m := &measured{report: ledger.Account(in), caps: t.caps, invalid: t.invalid, notes: t.notes}
	if m.report.AckedBeforeEffect > 0 {
		m.damage = fmt.Sprintf("%d messages were acked before their effect", m.report.AckedBeforeEffect)
	}
	// What had no answer may be in the queue too, and nobody has handled it.
	if kept := t.left - m.report.Stranded - (m.report.Unknown - m.report.Recovered); t.stranded && kept > 0 {
		m.damage = fmt.Sprintf("the queue still holds %d messages that were handled and acked: an ack does not settle", kept)
	}
	if !t.stranded && t.left > 0 && m.report.Lost > 0 {
		m.invalid = append(m.invalid, fmt.Sprintf("the drain ended early: the queue still holds %d messages, so that what is lost is not known", t.left))
	}
	m.facts = t.gatherFacts(records)
	if why := backwards(m.report.Lost, m.facts.CrashLost); why != "" {
		m.invalid = append(m.invalid, why)
	}
	if late := lateAcks(records, t.victims); late > 0 && !t.caps.Broadcast {
		m.notes = append(m.notes, fmt.Sprintf("%d late acks succeeded, of messages that another consumer had got meanwhile", late))
		if scheme(t.spec.Setting.Backend) == "amqp" { // whose connection was closed before the other one got it
			m.damage = fmt.Sprintf("%d late acks of a consumer that had been given up ended without an error", late)
		}
	}
	if err := m.report.Conservation; err != nil {
		m.invalid = append(m.invalid, "the ledger does not balance: "+err.Error())
	}
	if m.report.Sent == 0 {
		m.invalid = append(m.invalid, "nothing was sent")
	}
	m.invalid = append(m.invalid, t.gate(m.facts)...)
	if t.spec.Test == TestFault {
		e := Evidence{
			Trial:     TrialName(t.spec.Setting.Backend, t.spec.Setting.label(), t.spec.Fault, t.spec.n),
			Processes: t.parts(), Effects: effects, Remaining: in.Remaining, Notes: append(slices.Clone(t.notes), m.invalid...), Records: records,
		}
		if err := keepEvidence(t.lab.Evidence, e); err != nil {
			return nil, err
		}
	}
	m.settings, err = t.lab.effectiveSettings(ctx, t.broker, t.url)
	return m, err
}

// input is what the verdicts are drawn from.
func (t *crashTrial) input(records []ledger.Record, effects map[string]int) ledger.Input {
	return ledger.Input{Records: records, Effects: effects, FaultAt: t.struckAt, Confirm: t.caps.Confirm, KeyOf: load.Source{Keys: 1}.KeyOf}
}

// backwards says that a power cut lost less than the mere kill of the same instant
// would have; "" where it did not. What a killed process leaves has all that the
// power leaves, so that one of the two was not read as it is.
func backwards(lost, killLost int64) string {
	if lost >= killLost {
		return ""
	}
	return fmt.Sprintf("the power cut lost %d, and a mere kill at the same instant would have lost %d: it leaves no less behind, so that one of the two was misread", lost, killLost)
}

// parts tells what each process of the trial was.
func (t *crashTrial) parts() map[uint16]Part {
	parts := map[uint16]Part{controlProcess: {Role: "harness"}}
	for _, n := range t.nodes {
		role := "producer"
		if n.process >= firstConsumer {
			role = "consumer"
		}
		parts[n.process] = Part{Role: role, Victim: slices.Contains(t.victims, n.process)}
	}
	return parts
}

// remaining are those of the missing messages that the queue still holds: the
// latest, and no more than it says there are, since the rest is lost. A queue
// that does not tell (left < 0) may hold all of them.
func remaining(missing []ledger.ID, left int64) []string {
	if left >= 0 && left < int64(len(missing)) {
		missing = missing[int64(len(missing))-left:]
	}
	ids := make([]string, len(missing))
	for i, id := range missing {
		ids[i] = id.String()
	}
	return ids
}

// gate says why a fault proves nothing: an idle victim, or a broker that did
// not come back.
func (t *crashTrial) gate(f Facts) []string {
	var why []string
	if len(t.victims) > 0 && f.InHand == 0 && !t.fault.EmptyHand {
		why = append(why, "the victim held nothing when it was struck")
	}
	if t.frozen && f.Backlog == 0 {
		why = append(why, "the queue held nothing when the fault struck")
	}
	if t.probed && t.probeAccepted < 5 {
		why = append(why, fmt.Sprintf("the queue took %d of %d messages after the heal", t.probeAccepted, probeMessages))
	}
	return why
}

// gatherFacts computes what the oracle's bounds need from what the ledger saw,
// beside what the fault told.
func (t *crashTrial) gatherFacts(records []ledger.Record) Facts {
	f := t.facts
	var struck, healed int64 // the first event, and the last heal
	for _, r := range records {
		switch {
		case r.Event == ledger.FaultConfirmed && struck == 0:
			struck = r.At
		case r.Event == ledger.FaultHealed:
			healed = r.At
		case r.Event == ledger.EffectUnknown:
			f.Doubts++
		}
	}
	if struck == 0 {
		return f
	}
	if healed == 0 {
		healed = struck
	}
	delivered := map[ledger.ID]bool{} // to the victim, or to anyone before the fault
	done := map[ledger.ID]bool{}
	early := map[ledger.ID]bool{} // sent before the heal
	for _, r := range records {
		switch {
		case r.Event == ledger.Intent && r.At <= healed:
			early[r.ID()] = true
		case r.Event == ledger.Delivered && r.At <= struck:
			delivered[r.ID()] = true
		case r.Event == ledger.Effect && r.At <= struck:
			done[r.ID()] = true
		}
	}
	window := struck - f.Window*int64(time.Millisecond)
	var missed int64 // sent before the heal, accepted, and not delivered before the fault
	for _, r := range records {
		if r.Event != ledger.Accepted {
			continue
		}
		if slices.Contains(t.probes, r.Producer) {
			t.probeAccepted++
		}
		if !early[r.ID()] {
			continue // whoever is not heard now is no victim of the fault
		}
		if r.Arg == 1 { // the queue counts receivers, and there was none
			f.Unheard++
		}
		if !delivered[r.ID()] {
			missed++
		}
		if f.Window > 0 && r.At >= window && r.At <= struck {
			f.Recent++
		}
	}
	f.Published = missed
	if len(t.victims) == 0 {
		f.Unacked = int64(len(ledger.Unsettled(records, struck)))
		return f
	}
	hand := ledger.Unsettled(records, struck, t.victims...)
	f.Killed, f.InHand = int64(len(t.victims)), int64(len(hand))
	for _, id := range hand {
		if done[id] {
			f.InHandDone++
		}
	}
	switch {
	case t.spec.Setting.Broker == "": // all that waited in the process
		f.Backlog = missed
	case scheme(t.spec.Setting.Backend) == "amqp" && t.caps.Guarantee == queue.AtMostOnce:
		f.Buffer += missed // auto-ack: pushed without a bound
	case scheme(t.spec.Setting.Backend) == "amqp", scheme(t.spec.Setting.Backend) == "nats":
		f.Buffer += int64(t.spec.Load.Prefetch)
	}
	return f
}
