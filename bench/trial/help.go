package trial

import (
	"cmp"
	"slices"

	"queuelab/bench/fault"
)

// TestHelp says what each test measures.
func TestHelp() map[string]string {
	return map[string]string{
		TestLatency:    "open loop at a stated rate, from the due time of each message",
		TestThroughput: "closed loop: the highest rate that producer and consumer hold together",
		TestCrash:      "what is lost and what comes twice when something is killed",
		TestFault:      "the crash lab: every fault on many trials, expected against measured; `queuelab faults`",
		TestSale:       "the real service over the queue, more buyers than stock",
		TestSLO:        "the highest rate that keeps the promise of --slo, by open loops at rising rates",

		TestScalingConsumers:   "throughput with 1 to 16 consumers",
		TestScalingConnections: "throughput over 1 to 8 connections, a publisher on each",
		TestScalingPayload:     "throughput with payloads of 100 B to 100 KB",
		TestScalingBatch:       "throughput with 1 to 512 messages in one Publish",
	}
}

// FaultHelp says what each fault does.
func FaultHelp() map[string]string {
	help := map[string]string{FaultServiceKill: "the service gets SIGKILL in the middle of a sale, and is restarted"}
	for _, f := range fault.All() {
		help[f.Name] = f.Summary
	}
	return help
}

// SortCells puts cells into the order of the settings, tests and faults.
func SortCells(cells []Cell) {
	settings := map[string]int{}
	for i, s := range Settings() {
		settings[s.String()] = i
	}
	tests := Tests()
	faults := Faults()
	slices.SortStableFunc(cells, func(a, b Cell) int {
		return cmp.Or(
			cmp.Compare(settings[a.Backend+"/"+a.Setting], settings[b.Backend+"/"+b.Setting]),
			cmp.Compare(slices.Index(tests, a.Test), slices.Index(tests, b.Test)),
			cmp.Compare(slices.Index(faults, a.Fault), slices.Index(faults, b.Fault)))
	})
}
