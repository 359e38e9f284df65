package ledger

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"queuelab/queue"
)

// Input is what is known about a trial once it is over.
type Input struct {
	Records []Record // as Read returns them: sorted by At
	// Effects counts the committed effects of each message id, before anything
	// made them unique: rows of a table without a unique key, or EffectsOf the
	// records. nil: the first delivery of a message counts as its one effect.
	Effects map[string]int
	// CountEffects, where Effects is nil, counts the Effect records: the same as
	// Effects from EffectsOf, without a map of all messages.
	CountEffects bool
	// Ids that are still in the broker after the drain, in a dead-letter
	// destination, and reported as dropped by a limit.
	Remaining, DeadLettered, Dropped []string
	Confirm                          queue.Confirm
	// Copies is how many deliveries a message gets by design: the subscribers
	// of a broadcast queue. 0 is 1.
	Copies int
	// KeyOf tells a message's key, for the order; nil: all have the same.
	KeyOf func(ID) string
	// FaultAt is when the fault struck, as of Now; 0: at the first FaultConfirmed.
	FaultAt int64
	// From and To bound the latencies to messages due in [From, To), as of Now,
	// so that the warm-up stays out; 0: no bound.
	From, To int64
}

// Report is the account of a trial.
type Report struct {
	Counts
	LostIDs []ID // in order of their publish

	// The lost by where they were last seen: never delivered; delivered and
	// never acked by the consumer, and still forgotten by the queue; acked, and
	// yet without an effect.
	LostUndelivered, LostUnacked, LostAcked int64

	AckedBeforeEffect int64 // of messages whose effect the ledger has
	AfterAck          int64 // deliveries after the message was acked, and not of another copy
	Unheard           int64 // accepted, with no receiver
	Missed            int64 // deliveries short of Input.Copies, of accepted messages that had at least one

	// Conservation is nil where every message is accounted for exactly once.
	// Otherwise the trial is invalid, and this says why.
	Conservation error

	LossWindow  time.Duration  // age, at the fault, of the oldest lost message that was accepted before it; 0 without such
	Recovery    *time.Duration // from the fault to the first delivery after it; nil: no fault, or no delivery after it
	First, Last int64          // of all records, as of Now

	Latencies
}

// Account draws the verdicts from the records of one trial.
//
// A message is accepted if any attempt was; rejected if every attempt was; else
// unknown, also where the producer died before it wrote an outcome. Each
// accepted message is counted once, in the order effect, dead-letter, policy
// drop, stranded, lost. What a queue delivers carries no trace of the attempt
// that it stems from, so deliveries beyond the first are put down to further
// attempts that were not rejected, as far as there were any (producer
// duplicates), and else to the queue (redelivered).
func Account(in Input) Report {
	t := NewTally(in)
	for i := range in.Records {
		t.Add(in.Records[i])
	}
	return t.Report()
}

// Report is Account over what was added so far. It may be called again after
// the Input was changed, or more was added.
func (t *Tally) Report() Report {
	in := &t.Input
	copies := int64(max(1, in.Copies))
	t.mark()
	r := Report{First: t.first, Last: t.last, Latencies: newLatencies()}
	var withEffect int64
	var faults faults
	var lost []lostMessage
	t.each(func(_ row, m *message) {
		t.countEffects(m)
		faults.add(m, in.Effects != nil || in.CountEffects)
		if !m.sent() {
			if m.deliveries > 0 || m.effects > 0 {
				r.Phantom++
			}
			return
		}
		r.countSend(m)
		r.countDeliveries(m, copies)
		if in.covers(m.due) {
			r.Latencies.add(m)
		}
		if !m.isAccepted() {
			return
		}
		switch {
		case m.effects > 0:
			withEffect++
		case m.dead, m.gaveUp:
			r.DeadLettered++
		case m.dropped:
			r.PolicyDropped++
		case m.remaining:
			r.Stranded++
		default:
			r.countLost(m, t.struckAt())
			lost = append(lost, lostMessage{m.id, m.intended})
		}
	})
	r.LostIDs = inOrder(lost)
	if in.Confirm == queue.ConfirmNone {
		r.Unconfirmed = r.Accepted
	}
	if t.recovered {
		d := time.Duration(t.recoveredAt - t.struckAt())
		r.Recovery = &d
	}
	r.Reordered = t.reordered(in.KeyOf)
	r.Conservation = errors.Join(append(faults.errors(), balance(r.Counts, withEffect))...)
	return r
}

// covers reports whether the latencies of a message due then are asked for.
func (in *Input) covers(due int64) bool {
	return (in.From == 0 || due >= in.From) && (in.To == 0 || due < in.To)
}

type lostMessage struct {
	id       ID
	intended int64
}

func inOrder(lost []lostMessage) []ID {
	slices.SortFunc(lost, func(a, b lostMessage) int {
		return cmp.Or(cmp.Compare(a.intended, b.intended), compareIDs(a.id, b.id))
	})
	var ids []ID
	for _, l := range lost {
		ids = append(ids, l.id)
	}
	return ids
}

func compareIDs(a, b ID) int {
	return cmp.Or(cmp.Compare(a.Trial, b.Trial), cmp.Compare(a.Producer, b.Producer),
		cmp.Compare(a.Incarnation, b.Incarnation), cmp.Compare(a.Seq, b.Seq))
}

func (r *Report) countSend(m *message) {
	r.Sent++
	switch {
	case m.isAccepted():
		r.Accepted++
		if m.unheard {
			r.Unheard++
		}
	case m.isRejected():
		r.Rejected++
		if m.deliveries > 0 || m.effects > 0 {
			r.RejectedDelivered++
		}
	default:
		r.Unknown++
		if m.deliveries > 0 || m.effects > 0 {
			r.Recovered++
		}
	}
}

func (r *Report) countDeliveries(m *message, copies int64) {
	byDesign := min(1, m.deliveries)
	if copies > 1 {
		byDesign = min(copies, int64(len(m.seenBy)))
	}
	extra := m.deliveries - byDesign
	again := min(extra, m.extraAttempts()*copies)
	r.ProducerDuplicates += again
	r.Redelivered += extra - again
	r.EffectDuplicates += max(0, m.effects-copies)
	if copies == 1 {
		r.AfterAck += max(0, m.afterAck-m.extraAttempts())
	}
	if m.isAccepted() && byDesign > 0 {
		r.Missed += copies - byDesign
	}
	if m.effectRecords > 0 && m.acks > 0 && m.firstAck < m.firstEffect {
		r.AckedBeforeEffect++
	}
}

func (r *Report) countLost(m *message, faultAt int64) {
	r.Lost++
	switch {
	case m.deliveries == 0:
		r.LostUndelivered++
	case m.acks == 0:
		r.LostUnacked++
	default:
		r.LostAcked++
	}
	if faultAt != 0 {
		r.LossWindow = max(r.LossWindow, time.Duration(faultAt-m.acceptedAt))
	}
}
