package live

import "queuelab/bench/ledger"

// overtaken counts messages that took effect after a later one of their key: what
// consumers that compete do to the order, also where the queue kept it. Later is
// behind it in its producer's own numbering.
type overtaken struct {
	keyOf  func(ledger.ID) string
	latest map[stream]uint64
	seen   map[ledger.ID]bool
	n      int64
}

// stream is what has an order: the messages of one producer with one key.
type stream struct {
	producer, incarnation uint16
	key                   string
}

func newOvertaken(keyOf func(ledger.ID) string) *overtaken {
	return &overtaken{keyOf: keyOf, latest: map[stream]uint64{}, seen: map[ledger.ID]bool{}}
}

// add takes a record, in order of time. Only the first effect of a message counts.
func (o *overtaken) add(r ledger.Record) {
	id := r.ID()
	if r.Event != ledger.Effect || o.seen[id] {
		return
	}
	o.seen[id] = true
	s := stream{id.Producer, id.Incarnation, o.keyOf(id)}
	if last, ok := o.latest[s]; ok && last > id.Seq {
		o.n++
		return
	}
	o.latest[s] = id.Seq
}
