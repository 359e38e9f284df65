package trial

import (
	"slices"

	"queuelab/bench/ledger"
)

// lateAcks counts the messages that victims held when the fault struck, and that
// they acked with nil after another consumer had got them.
func lateAcks(records []ledger.Record, victims []uint16) int64 {
	struck := slices.IndexFunc(records, func(r ledger.Record) bool { return r.Event == ledger.FaultConfirmed })
	if struck < 0 || len(victims) == 0 {
		return 0
	}
	held := map[ledger.ID]bool{}
	for _, id := range ledger.Unsettled(records, records[struck].At, victims...) {
		held[id] = true
	}
	taken := map[ledger.ID]bool{} // by another consumer
	var late int64
	for _, r := range records[struck:] { // in the order of time
		switch {
		case !held[r.ID()]:
		case r.Event == ledger.Delivered && !slices.Contains(victims, r.Process):
			taken[r.ID()] = true
		case r.Event == ledger.Acked && slices.Contains(victims, r.Process) && taken[r.ID()]:
			late++
		}
	}
	return late
}
