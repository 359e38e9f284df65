package learn

import "queuelab/queue"

// Offered counts what became of messages that were offered.
type Offered struct {
	Accepted, Rejected, Unknown int64
	IDs                         []string // those that were accepted
}

// Offer publishes messages, one call each, and counts what became of them: a
// refusal does not end the lesson.
func (s *Stand) Offer(p queue.Publisher, ms ...queue.Message) (o Offered) {
	for _, m := range ms {
		switch queue.OutcomeOf(p.Publish(s.ctx, m), 0) {
		case queue.Accepted:
			o.Accepted++
			o.IDs = append(o.IDs, m.ID)
		case queue.Rejected:
			o.Rejected++
		default:
			o.Unknown++
		}
	}
	return o
}
