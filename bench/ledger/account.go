package ledger

import (
	"errors"
	"fmt"
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

// message is what the records say about one id.
type message struct {
	id                                             ID
	intents, accepted, rejected, unknown           int64
	deliveries, acks, effects                      int64
	due, intended, call                            int64
	acceptedAt, concludedAt, firstAck, firstEffect int64 // 0: never
	firstDelivery                                  int64
	afterAck                                       int64
	unheard                                        bool
	remaining, dead, dropped                       bool
	seenBy                                         []sighting // the first delivery by each consumer, of a broadcast queue
}

type sighting struct{ consumer, at int64 }

func (m *message) sent() bool       { return m.intents > 0 }
func (m *message) isAccepted() bool { return m.accepted > 0 }
func (m *message) isRejected() bool { return m.sent() && m.rejected == m.intents }

// extraAttempts is how many copies beyond the first its attempts may have made.
func (m *message) extraAttempts() int64 { return max(0, m.intents-m.rejected-1) }

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
	in.Copies = max(1, in.Copies)
	t := tally(in)
	r := Report{First: t.first, Last: t.last}
	if in.FaultAt == 0 {
		in.FaultAt = t.faultAt
	}
	var withEffect int64
	for _, m := range t.messages {
		if !m.sent() {
			if m.deliveries > 0 || m.effects > 0 {
				r.Phantom++
			}
			continue
		}
		r.countSend(m)
		r.countDeliveries(m, int64(in.Copies))
		if !m.isAccepted() {
			continue
		}
		switch {
		case m.effects > 0:
			withEffect++
		case m.dead:
			r.DeadLettered++
		case m.dropped:
			r.PolicyDropped++
		case m.remaining:
			r.Stranded++
		default:
			r.countLost(m, in.FaultAt)
		}
	}
	if in.Confirm == queue.ConfirmNone {
		r.Unconfirmed = r.Accepted
	}
	r.Recovery = recovery(in.Records, in.FaultAt)
	r.Reordered = reordered(t.messages, in.KeyOf, in.Copies > 1)
	r.Latencies = latencies(t.messages, in.From, in.To)
	r.Conservation = errors.Join(append(t.faults(in.Effects != nil), balance(r.Counts, withEffect))...)
	return r
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
	if m.firstEffect != 0 && m.firstAck != 0 && m.firstAck < m.firstEffect {
		r.AckedBeforeEffect++
	}
}

func (r *Report) countLost(m *message, faultAt int64) {
	r.Lost++
	r.LostIDs = append(r.LostIDs, m.id)
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

// balance checks that each message is in exactly one class.
func balance(c Counts, withEffect int64) error {
	var errs []error
	if got := c.Accepted + c.Rejected + c.Unknown; got != c.Sent {
		errs = append(errs, fmt.Errorf("%d accepted + %d rejected + %d unknown are not the %d sent", c.Accepted, c.Rejected, c.Unknown, c.Sent))
	}
	if got := withEffect + c.DeadLettered + c.PolicyDropped + c.Stranded + c.Lost; got != c.Accepted {
		errs = append(errs, fmt.Errorf("%d with an effect + %d dead-lettered + %d dropped by policy + %d stranded + %d lost are not the %d accepted",
			withEffect, c.DeadLettered, c.PolicyDropped, c.Stranded, c.Lost, c.Accepted))
	}
	return errors.Join(errs...)
}

// recovery is the time from the fault to the first delivery after it.
func recovery(rs []Record, faultAt int64) *time.Duration {
	if faultAt == 0 {
		return nil
	}
	for i := range rs {
		if rs[i].Event == Delivered && rs[i].At > faultAt {
			d := time.Duration(rs[i].At - faultAt)
			return &d
		}
	}
	return nil
}

// EffectsOf counts the Effect records of each message, for Input.Effects.
func EffectsOf(rs []Record) map[string]int {
	n := map[string]int{}
	for i := range rs {
		if rs[i].Event == Effect {
			n[FormatID(rs[i].ID())]++
		}
	}
	return n
}

// Unsettled returns the messages that the given processes, or all of them, had
// been delivered by at and had not acked or nacked by then: what was in hand.
func Unsettled(rs []Record, at int64, processes ...uint16) []ID {
	type hold struct {
		id      ID
		process uint16
	}
	held := map[hold]int{}
	var order []hold
	for i := range rs {
		r := &rs[i]
		if r.At > at || len(processes) > 0 && !slices.Contains(processes, r.Process) {
			continue
		}
		h := hold{r.ID(), r.Process}
		switch r.Event {
		case Delivered:
			if _, seen := held[h]; !seen {
				order = append(order, h)
			}
			held[h]++
		case Acked, Nacked:
			held[h]--
		}
	}
	var ids []ID
	for _, h := range order {
		if held[h] > 0 {
			ids = append(ids, h.id)
		}
	}
	return ids
}
