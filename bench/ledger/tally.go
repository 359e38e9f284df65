package ledger

import "cmp"

// Tally takes the records of a trial one at a time and accounts for them. It
// holds about 60 bytes a message, and a few hundred of each to which something
// happened more than once, or that went to several subscribers.
type Tally struct {
	// Input is as Account takes it, without its Records. Copies and FaultAt must
	// be set before the first Add; the rest may change until Report.
	Input Input

	pages   []page
	long    map[row]*message
	streams map[streamID]*stream
	recent  *stream // that of the latest record: mostly the next one's too
	odd     map[ID]row
	oddNext row // the next free row of an odd page
	oddLeft int

	any         bool
	first, last int64
	faultAt     int64 // the first FaultConfirmed
	recoveredAt int64 // the first delivery after the fault
	recovered   bool
}

// NewTally returns a Tally without records.
func NewTally(in Input) *Tally {
	return &Tally{Input: in, long: map[row]*message{}, streams: map[streamID]*stream{}, odd: map[ID]row{}}
}

// perPage is how many briefs are allocated at once; they fill a size class of
// the allocator.
const perPage = 256

// row is where a message is: its page, and its place in it.
type row uint32

// page holds messages of one stream, of adjacent sequence numbers, or the odd ones.
type page struct {
	of    *stream
	base  uint64 // sequence number of the first row
	ids   []ID   // of an odd page
	brief *[perPage]brief
}

// streamID is one incarnation of a producer. Its sequence numbers are dense, so
// that its messages are found by index.
type streamID struct {
	trial                 uint32
	producer, incarnation uint16
}

type stream struct {
	id       streamID
	pages    []uint32        // number of the page + 1, by sequence number / perPage; 0: none
	arrivals map[int64][]row // messages by the consumer of their first delivery, in its order; consumer 0 where it does not matter
}

// Add takes the next record, in order of At, as Scan yields them.
func (t *Tally) Add(r Record) {
	if !t.any {
		t.any, t.first, t.last = true, r.At, r.At
	}
	t.last = max(t.last, r.At)
	if r.Event >= FaultAsked {
		if r.Event == FaultConfirmed && t.faultAt == 0 {
			t.faultAt = r.At
		}
		return
	}
	if r.Event == Delivered && !t.recovered {
		if at := t.struckAt(); at != 0 && r.At > at {
			t.recovered, t.recoveredAt = true, r.At
		}
	}
	id := r.ID()
	s := t.stream(streamID{id.Trial, id.Producer, id.Incarnation})
	n := t.row(s, id)
	b := t.brief(n)
	first := b.flags&sawDelivery == 0
	if b.flags&isLong == 0 && (r.Event != Delivered || t.Input.Copies <= 1) && b.add(&r) {
		if r.Event == Delivered {
			s.arrivals[0] = append(s.arrivals[0], n)
		}
		return
	}
	m := t.lengthen(n)
	seen := len(m.seenBy)
	m.add(&r, t.Input.Copies)
	switch {
	case r.Event != Delivered:
	case t.Input.Copies > 1 && len(m.seenBy) > seen:
		s.arrivals[consumerOf(&r)] = append(s.arrivals[consumerOf(&r)], n)
	case t.Input.Copies <= 1 && first:
		s.arrivals[0] = append(s.arrivals[0], n)
	}
	if m.deliveries > 0 {
		b.flags |= sawDelivery
	}
}

func (t *Tally) struckAt() int64 { return cmp.Or(t.Input.FaultAt, t.faultAt) }

func (t *Tally) stream(id streamID) *stream {
	if t.recent != nil && t.recent.id == id {
		return t.recent
	}
	s := t.streams[id]
	if s == nil {
		s = &stream{id: id, arrivals: map[int64][]row{}}
		t.streams[id] = s
	}
	t.recent = s
	return s
}

// row finds the row of a message, or makes it.
func (t *Tally) row(s *stream, id ID) row {
	if len(t.odd) > 0 {
		if n, ok := t.odd[id]; ok {
			return n
		}
	}
	// A sequence number far beyond those known would waste a page, and is no
	// number of a producer of ours in all likelihood.
	no := id.Seq / perPage
	if id.Trial == foreignTrial || no >= 2*uint64(len(s.pages))+4 {
		return t.oddRow(id)
	}
	for uint64(len(s.pages)) <= no {
		s.pages = append(s.pages, 0)
	}
	if s.pages[no] == 0 {
		t.pages = append(t.pages, page{of: s, base: no * perPage, brief: new([perPage]brief)})
		s.pages[no] = uint32(len(t.pages))
	}
	return row(s.pages[no]-1)*perPage + row(id.Seq%perPage)
}

func (t *Tally) oddRow(id ID) row {
	if t.oddLeft == 0 {
		t.oddNext, t.oddLeft = row(len(t.pages))*perPage, perPage
		t.pages = append(t.pages, page{ids: make([]ID, perPage), brief: new([perPage]brief)})
	}
	n := t.oddNext
	t.oddNext++
	t.oddLeft--
	t.pages[n/perPage].ids[n%perPage] = id
	t.odd[id] = n
	return n
}

func (t *Tally) brief(n row) *brief { return &t.pages[n/perPage].brief[n%perPage] }

func (t *Tally) id(n row) ID {
	p := &t.pages[n/perPage]
	if p.ids != nil {
		return p.ids[n%perPage]
	}
	return ID{p.of.id.trial, p.of.id.producer, p.of.id.incarnation, p.base + uint64(n%perPage)}
}

// lengthen makes a message of a brief.
func (t *Tally) lengthen(n row) *message {
	m := t.long[n]
	if m == nil {
		m = new(message)
		b := t.brief(n)
		b.expand(m, t.id(n))
		b.flags |= isLong
		t.long[n] = m
	}
	return m
}

// message returns what is known about row n; into is overwritten, to spare an
// allocation, where nothing is known at length.
func (t *Tally) message(n row, into *message) *message {
	b := t.brief(n)
	if b.flags&isLong != 0 {
		return t.long[n]
	}
	b.expand(into, t.id(n))
	return into
}

// each calls do with every message; it must not keep it.
func (t *Tally) each(do func(n row, m *message)) {
	var m message
	for p := range t.pages {
		for i := range t.pages[p].brief {
			if t.pages[p].brief[i].flags != 0 {
				n := row(p*perPage + i)
				do(n, t.message(n, &m))
			}
		}
	}
}

// mark writes what the Input says into the messages, in place of what an
// earlier one said.
func (t *Tally) mark() {
	for p := range t.pages {
		for i := range t.pages[p].brief {
			t.pages[p].brief[i].flags &^= fromInput
		}
	}
	for _, m := range t.long {
		m.effects, m.remaining, m.dead, m.dropped = 0, false, false, false
	}
	for s, effects := range t.Input.Effects {
		if effects <= 0 {
			continue
		}
		n := t.find(s)
		if b := t.brief(n); effects == 1 && b.flags&isLong == 0 && b.flags&hasEffect == 0 {
			b.flags |= hasEffect
			continue
		}
		t.lengthen(n).effects += int64(effects)
	}
	for _, m := range []struct {
		ids  []string
		flag uint16
	}{{t.Input.Remaining, isRemaining}, {t.Input.DeadLettered, isDead}, {t.Input.Dropped, isDropped}} {
		for _, s := range m.ids {
			n := t.find(s)
			t.brief(n).flags |= m.flag
		}
	}
	for n, m := range t.long {
		flags := t.brief(n).flags
		m.remaining, m.dead, m.dropped = flags&isRemaining != 0, flags&isDead != 0, flags&isDropped != 0
	}
}

func (t *Tally) find(s string) row {
	id := idOf(s)
	return t.row(t.stream(streamID{id.Trial, id.Producer, id.Incarnation}), id)
}

// countEffects replaces the effects of a message where the Input has none.
func (t *Tally) countEffects(m *message) {
	switch {
	case t.Input.Effects != nil:
	case t.Input.CountEffects:
		m.effects = m.effectRecords
	default:
		m.effects = min(1, m.deliveries)
	}
}
