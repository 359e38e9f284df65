package ledger

import "slices"

// EffectsOf counts the Effect records of each message, for Input.Effects.
func EffectsOf(rs []Record) map[string]int {
	n := map[string]int{}
	for i := range rs {
		if rs[i].Event == Effect {
			n[FormatID(rs[i].ID())]++
		}
	}
	return n
}

// Unsettled returns the messages that the given processes, or all of them, had
// been delivered by at and had not acked or nacked by then: what was in hand.
func Unsettled(rs []Record, at int64, processes ...uint16) []ID {
	type hold struct {
		id      ID
		process uint16
	}
	held := map[hold]int{}
	var order []hold
	for i := range rs {
		r := &rs[i]
		if r.At > at || len(processes) > 0 && !slices.Contains(processes, r.Process) {
			continue
		}
		h := hold{r.ID(), r.Process}
		switch r.Event {
		case Delivered:
			if _, seen := held[h]; !seen {
				order = append(order, h)
			}
			held[h]++
		case Acked, Nacked:
			held[h]--
		}
	}
	var ids []ID
	for _, h := range order {
		if held[h] > 0 {
			ids = append(ids, h.id)
		}
	}
	return ids
}
