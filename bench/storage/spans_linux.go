package storage

import "slices"

// span is the bytes from one offset to before another.
type span struct{ from, to int64 }

// spans are parts of a file, in order, that neither touch nor overlap.
type spans []span

// add adds a part.
func (s *spans) add(from, to int64) {
	if from >= to {
		return
	}
	old := *s
	// Of those that it touches, the first, and the first behind the last.
	first, _ := slices.BinarySearchFunc(old, from, func(p span, from int64) int {
		if p.to < from {
			return -1
		}
		return 1
	})
	last := first
	for last < len(old) && old[last].from <= to {
		last++
	}
	if last > first {
		from, to = min(from, old[first].from), max(to, old[last-1].to)
	}
	*s = slices.Replace(old, first, last, span{from, to})
}

// cut takes away what lies at or behind an offset.
func (s *spans) cut(at int64) {
	old := *s
	for len(old) > 0 && old[len(old)-1].from >= at {
		old = old[:len(old)-1]
	}
	if n := len(old); n > 0 {
		old[n-1].to = min(old[n-1].to, at)
	}
	*s = old
}

// bytes is how long they are together.
func (s spans) bytes() (n int64) {
	for _, p := range s {
		n += p.to - p.from
	}
	return n
}
