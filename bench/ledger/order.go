package ledger

import (
	"cmp"
	"math"
	"slices"
)

// passage is what the order of a message is judged by.
type passage struct {
	id                                 ID
	call, intended, concluded, arrived int64
}

// reordered counts messages whose first delivery came after that of a later
// message of their lane: one key of one incarnation of a producer, and for a
// broadcast queue one consumer. Later is: published after the first had its
// answer, or behind it in the same Publish call. Concurrent publishes have no
// order.
func (t *Tally) reordered(keyOf func(ID) string) int64 {
	if keyOf == nil {
		keyOf = func(ID) string { return "" }
	}
	var n int64
	for _, s := range t.streams {
		for consumer, arrivals := range s.arrivals {
			n += t.overtaken(arrivals, consumer, keyOf)
			n += t.overtakenInCall(arrivals, consumer, keyOf)
			for _, r := range arrivals {
				t.brief(r).flags &^= isOvertaken
			}
		}
	}
	return n
}

// passage returns false for a message that was never accepted.
func (t *Tally) passage(n row, consumer int64) (passage, bool) {
	var m message
	p := t.message(n, &m)
	arrived := p.firstDelivery
	if len(p.seenBy) > 0 {
		arrived, _ = p.arrival(consumer)
	}
	return passage{p.id, p.call, p.intended, p.concludedAt, arrived}, p.isAccepted()
}

// overtaken marks and counts the messages that arrived after one that was
// published later.
func (t *Tally) overtaken(arrivals []row, consumer int64, keyOf func(ID) string) int64 {
	latest := map[string]int64{} // the latest intent of what arrived so far, by key
	type arrival struct {
		key      string
		intended int64
	}
	var together []arrival // what arrived at once has no order
	var now, n int64
	for _, r := range arrivals {
		p, ok := t.passage(r, consumer)
		if !ok {
			continue
		}
		if p.arrived != now {
			for _, a := range together {
				if l, ok := latest[a.key]; !ok || a.intended > l {
					latest[a.key] = a.intended
				}
			}
			together, now = together[:0], p.arrived
		}
		key := keyOf(p.id)
		if l, ok := latest[key]; ok && l > p.concluded {
			t.brief(r).flags |= isOvertaken
			n++
		}
		together = append(together, arrival{key, p.intended})
	}
	return n
}

// overtakenInCall marks and counts the messages, not marked yet, that arrived
// after one that was behind them in the same Publish call.
func (t *Tally) overtakenInCall(arrivals []row, consumer int64, keyOf func(ID) string) int64 {
	var rows []row
	for _, r := range arrivals {
		if p, ok := t.passage(r, consumer); ok && p.call != 0 {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		p, _ := t.passage(a, consumer)
		q, _ := t.passage(b, consumer)
		return cmp.Or(cmp.Compare(p.call, q.call), cmp.Compare(p.intended, q.intended), cmp.Compare(p.id.Seq, q.id.Seq))
	})
	soonest := map[string]int64{} // the first arrival of what is behind in the call, by key
	var n int64
	call := int64(math.MinInt64)
	for _, r := range slices.Backward(rows) {
		p, _ := t.passage(r, consumer)
		if p.call != call {
			call = p.call
			clear(soonest)
		}
		key := keyOf(p.id)
		s, seen := soonest[key]
		if b := t.brief(r); seen && s < p.arrived && b.flags&isOvertaken == 0 {
			b.flags |= isOvertaken
			n++
		}
		if !seen || p.arrived < s {
			soonest[key] = p.arrived
		}
	}
	return n
}
