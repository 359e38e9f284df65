package ledger

import "github.com/HdrHistogram/hdrhistogram-go"

// Latencies are in nanoseconds, of the messages that were due in the window.
// Those from due are the ones to report: a sender that stalls is late for every
// message that it should have sent meanwhile. Those from the send are shown
// beside them to say how much that matters.
type Latencies struct {
	Publish          *hdrhistogram.Histogram // due to the first accepted outcome
	EndToEnd         *hdrhistogram.Histogram // due to the first delivery
	PublishFromSend  *hdrhistogram.Histogram // intent to the first accepted outcome
	EndToEndFromSend *hdrhistogram.Histogram // intent to the first delivery
	Lateness         *hdrhistogram.Histogram // due to the first intent
	OutOfRange       int64                   // values below 0 or above an hour: in no histogram
}

// longest is what a histogram can hold: an hour, in ns.
const longest = 3_600_000_000_000

func latencies(ms []*message, from, to int64) Latencies {
	h := func() *hdrhistogram.Histogram { return hdrhistogram.New(1, longest, 3) }
	l := Latencies{h(), h(), h(), h(), h(), 0}
	record := func(h *hdrhistogram.Histogram, ns int64) {
		if h.RecordValue(ns) != nil {
			l.OutOfRange++
		}
	}
	for _, m := range ms {
		if !m.sent() || from != 0 && m.due < from || to != 0 && m.due >= to {
			continue
		}
		record(l.Lateness, m.intended-m.due)
		if m.isAccepted() {
			record(l.Publish, m.acceptedAt-m.due)
			record(l.PublishFromSend, m.acceptedAt-m.intended)
		}
		if m.deliveries > 0 {
			record(l.EndToEnd, m.firstDelivery-m.due)
			record(l.EndToEndFromSend, m.firstDelivery-m.intended)
		}
	}
	return l
}
