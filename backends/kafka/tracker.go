package kafka

import "sort"

// tracker knows which deliveries of one partition are done, and so how far the
// partition may be committed: up to the first that is not. Offsets need not be
// dense; compaction and transactions leave holes.
type tracker struct {
	open []tracked // handed out, in order, from the first that is not done
	next int64     // what may be committed: the offset after the finished prefix; 0 before anything is done
	held int       // done, but beyond one that is not
}

type tracked struct {
	offset int64
	done   bool
}

// add notes that a message was handed out. Offsets must grow.
func (t *tracker) add(offset int64) { t.open = append(t.open, tracked{offset: offset}) }

// done notes that a message is settled, and reports whether that is news.
func (t *tracker) done(offset int64) bool {
	i := sort.Search(len(t.open), func(i int) bool { return t.open[i].offset >= offset })
	if i == len(t.open) || t.open[i].offset != offset || t.open[i].done {
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
