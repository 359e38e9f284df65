package queuetest

import (
	"slices"
	"strings"
	"sync"
	"time"

	"queuelab/queue"
)

// tally counts what came of what was wanted.
type tally struct {
	mu      sync.Mutex
	want    map[string]bool
	seen    map[string]int
	missing int
	others  bool // messages that were not wanted may come too
	all     []*queue.Delivery
}

func newTally(want []queue.Message) *tally {
	t := &tally{want: make(map[string]bool), seen: make(map[string]int), missing: len(want)}
	for _, m := range want {
		t.want[m.ID] = true
	}
	return t
}

// add reports whether everything wanted has come.
func (t *tally) add(ds []*queue.Delivery) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range ds {
		if t.seen[d.ID]++; t.seen[d.ID] == 1 && t.want[d.ID] {
			t.missing--
		}
	}
	t.all = append(t.all, ds...)
	return t.missing == 0
}

func (t *tally) complete() bool { return t.add(nil) }

func (t *tally) report(e *env, limit time.Duration) {
	e.Helper()
	var lost, twice, strange []string
	for id := range t.want {
		if t.seen[id] == 0 {
			lost = append(lost, id)
		}
	}
	for id, n := range t.seen {
		if !t.want[id] {
			if t.others {
				continue
			}
			strange = append(strange, id)
		} else if n > 1 {
			twice = append(twice, id)
		}
	}
	slices.Sort(lost)
	slices.Sort(twice)
	slices.Sort(strange)
	if len(twice) > 0 {
		e.Errorf("%d of %d messages were delivered twice: %s", len(twice), len(t.want), some(twice))
	}
	if len(strange) > 0 {
		e.Errorf("%d messages came that must not come: %s", len(strange), some(strange))
	}
	if len(lost) > 0 {
		e.Fatalf("%d of %d messages are lost, not delivered within %v: %s", len(lost), len(t.want), limit, some(lost))
	}
}

func ids(ds []*queue.Delivery) []string {
	out := make([]string, len(ds))
	for i, d := range ds {
		out[i] = d.ID
	}
	return out
}

func some(ids []string) string {
	if len(ids) > 5 {
		return strings.Join(ids[:5], ", ") + ", …"
	}
	return strings.Join(ids, ", ")
}
