package ledger

// message is what the records say about one id.
type message struct {
	id                                   ID
	intents, accepted, rejected, unknown int64
	deliveries, acks                     int64
	effectRecords                        int64
	due, intended, call                  int64 // of the first intent
	acceptedAt, concludedAt              int64 // the first accepted, the last outcome
	firstDelivery, lastDelivery          int64
	firstEffect, firstAck                int64
	effectFrom, ackFrom                  int64 // the latest delivery before the first of either
	afterAck                             int64
	unheard                              bool
	gaveUp                               bool       // a consumer dead-lettered it
	seenBy                               []sighting // the first delivery by each consumer, of a broadcast queue

	// What the Input says.
	effects                  int64
	remaining, dead, dropped bool
}

type sighting struct{ consumer, at int64 }

func (m *message) sent() bool       { return m.intents > 0 }
func (m *message) isAccepted() bool { return m.accepted > 0 }
func (m *message) isRejected() bool { return m.sent() && m.rejected == m.intents }

// extraAttempts is how many copies beyond the first its attempts may have made.
func (m *message) extraAttempts() int64 { return max(0, m.intents-m.rejected-1) }

func consumerOf(r *Record) int64 { return callOf(r.Process, r.Arg) }

// callOf tells the calls of all processes apart.
func callOf(process uint16, number uint32) int64 { return int64(process)<<32 | int64(number) }

func (m *message) add(r *Record, copies int) {
	switch r.Event {
	case Intent:
		if m.intents == 0 {
			m.intended, m.due = r.At, r.Due
			if r.Arg != 0 {
				m.call = callOf(r.Process, r.Arg)
			}
		}
		m.intents++
	case Accepted:
		if m.accepted == 0 {
			m.acceptedAt = r.At
			m.unheard = true
		}
		m.accepted++
		m.concludedAt = r.At
		m.unheard = m.unheard && r.Arg == 1
	case Rejected:
		m.rejected++
		m.concludedAt = r.At
	case Unknown:
		m.unknown++
		m.concludedAt = r.At
	case Delivered:
		m.addDelivery(r, copies)
	case Effect:
		if m.effectRecords == 0 {
			m.firstEffect, m.effectFrom = r.At, m.lastDelivery
		}
		m.effectRecords++
	case Acked:
		if m.acks == 0 {
			m.firstAck, m.ackFrom = r.At, m.lastDelivery
		}
		m.acks++
	case DeadLettered:
		m.gaveUp = true
	}
}

func (m *message) addDelivery(r *Record, copies int) {
	if m.deliveries == 0 {
		m.firstDelivery = r.At
		// An effect or ack whose stamp is the older: a skewed clock.
		if m.effectRecords > 0 {
			m.effectFrom = r.At
		}
		if m.acks > 0 {
			m.ackFrom = r.At
		}
	}
	m.lastDelivery = r.At
	m.deliveries++
	if m.acks > 0 {
		m.afterAck++
	}
	if copies > 1 {
		if _, seen := m.arrival(consumerOf(r)); !seen {
			m.seenBy = append(m.seenBy, sighting{consumerOf(r), r.At})
		}
	}
}

// arrival returns when a consumer of a broadcast queue first saw the message.
func (m *message) arrival(consumer int64) (int64, bool) {
	for _, s := range m.seenBy {
		if s.consumer == consumer {
			return s.at, true
		}
	}
	return 0, false
}

// brief is a message to which nothing happened more than once, in as few bytes
// as can be: a run has millions. Everything else is a message.
type brief struct {
	due, intended, concluded, delivered, effect, acked int64
	call                                               uint32
	process                                            uint16 // of the intent
	flags                                              uint16
}

const (
	sawIntent = 1 << iota
	sawAccepted
	sawRejected
	sawUnknown
	sawDelivery
	sawEffect
	sawAck
	sawOther  // a record that says nothing about a message
	isUnheard // accepted, with no receiver
	isLong    // it is in Tally.long instead

	isRemaining // from here on what the Input says
	isDead
	isDropped
	hasEffect
	isOvertaken

	sawOutcome = sawAccepted | sawRejected | sawUnknown
	fromInput  = isRemaining | isDead | isDropped | hasEffect | isOvertaken
)

// add reports false, and changes nothing, where the record does not fit.
func (b *brief) add(r *Record) bool {
	// once sets a stamp and its flag, unless one of the bars is set.
	once := func(stamp *int64, flag, bars uint16) bool {
		if b.flags&bars != 0 {
			return false
		}
		*stamp = r.At
		b.flags |= flag
		return true
	}
	switch r.Event {
	case Intent:
		if !once(&b.intended, sawIntent, sawIntent) {
			return false
		}
		b.due, b.call, b.process = r.Due, r.Arg, r.Process
		return true
	case Accepted:
		if !once(&b.concluded, sawAccepted, sawOutcome) {
			return false
		}
		if r.Arg == 1 {
			b.flags |= isUnheard
		}
		return true
	case Rejected:
		return once(&b.concluded, sawRejected, sawOutcome)
	case Unknown:
		return once(&b.concluded, sawUnknown, sawOutcome)
	case Delivered:
		return once(&b.delivered, sawDelivery, sawDelivery|sawAck)
	case Effect:
		return once(&b.effect, sawEffect, sawEffect)
	case Acked:
		return once(&b.acked, sawAck, sawAck)
	case DeadLettered:
		return false
	}
	b.flags |= sawOther
	return true
}

// expand writes b as a message.
func (b *brief) expand(m *message, id ID) {
	one := func(flag uint16) int64 {
		if b.flags&flag != 0 {
			return 1
		}
		return 0
	}
	*m = message{
		id: id, intents: one(sawIntent), accepted: one(sawAccepted), rejected: one(sawRejected), unknown: one(sawUnknown),
		deliveries: one(sawDelivery), acks: one(sawAck), effectRecords: one(sawEffect),
		due: b.due, intended: b.intended, concludedAt: b.concluded,
		firstDelivery: b.delivered, lastDelivery: b.delivered, firstEffect: b.effect, firstAck: b.acked,
		effectFrom: b.delivered, ackFrom: b.delivered,
		unheard: b.flags&isUnheard != 0,
		effects: one(hasEffect), remaining: b.flags&isRemaining != 0, dead: b.flags&isDead != 0, dropped: b.flags&isDropped != 0,
	}
	if m.accepted > 0 {
		m.acceptedAt = b.concluded
	}
	if b.call != 0 {
		m.call = callOf(b.process, b.call)
	}
}
