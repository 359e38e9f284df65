package kafka

import (
	"cmp"
	"slices"
)

// tracker knows which deliveries of one partition are done, and so how far the
// partition may be committed: up to the first that is not. Offsets need not be
// dense; compaction and transactions leave holes.
type tracker struct {
	open []tracked // handed out, in order, from the first that is not done
	next int64     // what may be committed: the offset after the finished prefix; 0 before anything is done
	held int       // done, but beyond one that is not
	room []tracked // where open begins anew once it is empty
}

type tracked struct {
	offset int64
	done   bool
}

// add notes that a message was handed out. Offsets must grow.
func (t *tracker) add(offset int64) {
	if len(t.open) == 0 {
		t.open = t.room
	}
	full := len(t.open) == cap(t.open)
	t.open = append(t.open, tracked{offset: offset})
	if full {
		t.room = t.open[:0]
	}
}

// done notes that a message is settled, and reports whether that is news.
func (t *tracker) done(offset int64) bool {
	i, ok := t.find(offset)
	if !ok || t.open[i].done {
		return false
	}
	t.open[i].done = true
	t.held++
	for len(t.open) > 0 && t.open[0].done {
		t.next = t.open[0].offset + 1
		t.open = t.open[1:]
		t.held--
	}
	return true
}

// find looks first where the offset is if none is missing.
func (t *tracker) find(offset int64) (int, bool) {
	if len(t.open) == 0 {
		return 0, false
	}
	if i := offset - t.open[0].offset; i >= 0 && i < int64(len(t.open)) && t.open[i].offset == offset {
		return int(i), true
	}
	return slices.BinarySearchFunc(t.open, offset, func(a tracked, offset int64) int { return cmp.Compare(a.offset, offset) })
}
