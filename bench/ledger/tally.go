package ledger

import (
	"fmt"
	"slices"
)

// tallied is what one pass over the records finds.
type tallied struct {
	messages    []*message // in order of their first record
	streams     map[stream][]*message
	sparse      map[ID]*message
	dense       uint64 // below it a sequence number is an index into a stream
	block       []message
	copies      int
	first, last int64
	faultAt     int64 // the first FaultConfirmed
}

// stream is one incarnation of a producer. Its sequence numbers are dense, so
// that its messages are found by index: a run has millions.
type stream struct {
	trial                 uint32
	producer, incarnation uint16
}

func tally(in Input) *tallied {
	t := &tallied{streams: map[stream][]*message{}, sparse: map[ID]*message{}, dense: uint64(len(in.Records)), copies: in.Copies}
	for i := range in.Records {
		r := &in.Records[i]
		if i == 0 {
			t.first, t.last = r.At, r.At
		}
		t.last = max(t.last, r.At)
		if r.Event >= FaultAsked {
			if r.Event == FaultConfirmed && t.faultAt == 0 {
				t.faultAt = r.At
			}
			continue
		}
		t.message(r.ID()).add(r, t.copies)
	}
	t.addEffects(in.Effects)
	for _, id := range in.Remaining {
		t.message(idOf(id)).remaining = true
	}
	for _, id := range in.DeadLettered {
		t.message(idOf(id)).dead = true
	}
	for _, id := range in.Dropped {
		t.message(idOf(id)).dropped = true
	}
	return t
}

func (t *tallied) message(id ID) *message {
	if id.Seq >= t.dense {
		m := t.sparse[id]
		if m == nil {
			m = t.newMessage(id)
			t.sparse[id] = m
		}
		return m
	}
	s := stream{id.Trial, id.Producer, id.Incarnation}
	ms := t.streams[s]
	if n := int(id.Seq) + 1; n > len(ms) {
		ms = slices.Grow(ms, n-len(ms))[:n]
		t.streams[s] = ms
	}
	if ms[id.Seq] == nil {
		ms[id.Seq] = t.newMessage(id)
	}
	return ms[id.Seq]
}

func (t *tallied) newMessage(id ID) *message {
	if len(t.block) == 0 {
		t.block = make([]message, 1024)
	}
	m := &t.block[0]
	t.block = t.block[1:]
	m.id = id
	t.messages = append(t.messages, m)
	return m
}

func (t *tallied) addEffects(effects map[string]int) {
	if effects != nil {
		for id, n := range effects {
			t.message(idOf(id)).effects += int64(n)
		}
		return
	}
	for _, m := range t.messages {
		m.effects = min(1, m.deliveries)
	}
}

func (m *message) add(r *Record, copies int) {
	switch r.Event {
	case Intent:
		if m.intents == 0 {
			m.intended, m.due = r.At, r.Due
			if r.Arg != 0 {
				m.call = int64(r.Process)<<32 | int64(r.Arg)
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
		if m.firstEffect == 0 {
			m.firstEffect = r.At
		}
	case Acked:
		if m.firstAck == 0 {
			m.firstAck = r.At
		}
		m.acks++
	}
}

func (m *message) addDelivery(r *Record, copies int) {
	if m.deliveries == 0 {
		m.firstDelivery = r.At
	}
	m.deliveries++
	if m.firstAck != 0 {
		m.afterAck++
	}
	if copies == 1 {
		return
	}
	consumer := int64(r.Process)<<32 | int64(r.Arg)
	for _, s := range m.seenBy {
		if s.consumer == consumer {
			return
		}
	}
	m.seenBy = append(m.seenBy, sighting{consumer, r.At})
}

// faults lists what cannot be if the ledger is complete and its order rules
// were kept.
func (t *tallied) faults(effectsGiven bool) []error {
	var noIntent, tooMany, early, unseenAck, unseenEffect int
	for _, m := range t.messages {
		outcomes := m.accepted + m.rejected + m.unknown
		switch {
		case !m.sent() && outcomes > 0:
			noIntent++
		case outcomes > m.intents:
			tooMany++
		case m.sent() && m.deliveries > 0 && m.firstDelivery < m.intended:
			early++
		}
		if m.acks > m.deliveries {
			unseenAck++
		}
		if effectsGiven && m.effects > 0 && m.deliveries == 0 {
			unseenEffect++
		}
	}
	var errs []error
	for _, f := range []struct {
		n    int
		what string
	}{
		{noIntent, "with an outcome and no intent"},
		{tooMany, "with more outcomes than intents"},
		{early, "delivered before they were sent"},
		{unseenAck, "acked more often than delivered"},
		{unseenEffect, "with an effect and no delivery"},
	} {
		if f.n > 0 {
			errs = append(errs, fmt.Errorf("%d messages %s: the ledger is incomplete", f.n, f.what))
		}
	}
	return errs
}
