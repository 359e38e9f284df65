package kafka

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestTrackerCommitsTheFinishedPrefix(t *testing.T) {
	var tr tracker
	for offset := range int64(5) {
		tr.add(offset)
	}
	steps := []struct {
		done       int64
		next       int64
		held, open int
	}{
		{done: 3, next: 0, held: 1, open: 5},
		{done: 0, next: 1, held: 1, open: 4},
		{done: 1, next: 2, held: 1, open: 3},
		{done: 2, next: 4, held: 0, open: 1},
		{done: 4, next: 5, held: 0, open: 0},
	}
	for _, s := range steps {
		if !tr.done(s.done) {
			t.Errorf("done(%d): got false, want true the first time", s.done)
		}
		if tr.done(s.done) {
			t.Errorf("done(%d): got true, want false the second time", s.done)
		}
		if tr.next != s.next || tr.held != s.held || len(tr.open) != s.open {
			t.Errorf("after done(%d): got next %d, held %d, open %d, want %d, %d, %d",
				s.done, tr.next, tr.held, len(tr.open), s.next, s.held, s.open)
		}
	}
	if tr.done(7) {
		t.Error("done(7): got true, want false for an offset that was never handed out")
	}
}

// TestTrackerAgreesWithASet compares the tracker with the plainest thing that
// could be right, over offsets with holes.
func TestTrackerAgreesWithASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tr tracker
		var handed []int64
		done := map[int64]bool{}
		last := int64(-1)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if len(handed) == 0 || rapid.Bool().Draw(t, "hand out") {
				last += rapid.Int64Range(1, 3).Draw(t, "gap")
				handed = append(handed, last)
				tr.add(last)
				continue
			}
			offset := rapid.SampledFrom(handed).Draw(t, "done")
			if got, want := tr.done(offset), !done[offset]; got != want {
				t.Fatalf("done(%d): got %v, want %v", offset, got, want)
			}
			done[offset] = true

			first := slices.IndexFunc(handed, func(o int64) bool { return !done[o] })
			if first < 0 {
				first = len(handed)
			}
			next := int64(0)
			if first > 0 {
				next = handed[first-1] + 1
			}
			if tr.next != next {
				t.Fatalf("handed out %v, done %v: got next %d, want %d", handed, done, tr.next, next)
			}
			if tr.held != len(done)-first {
				t.Fatalf("handed out %v, done %v: got %d held, want %d", handed, done, tr.held, len(done)-first)
			}
		}
	})
}
