package ledger

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies are in nanoseconds, of the messages that were due in the window.
// Those from due are the ones to report: a sender that stalls is late for every
// message that it should have sent meanwhile. Those from the send are shown
// beside them to say how much that matters.
//
// A message is in the histograms of the stages that it reached.
type Latencies struct {
	Lateness *hdrhistogram.Histogram // due to the first intent: the generator's own
	Publish  *hdrhistogram.Histogram // due to the first accepted outcome: the response
	EndToEnd *hdrhistogram.Histogram // due to the first delivery
	Effect   *hdrhistogram.Histogram // due to the first Effect record
	Acked    *hdrhistogram.Histogram // due to the first ack's return
	// Handling is from a delivery to the first Effect record, or to the first ack
	// where there is no effect: the latest delivery before that, so that the wait
	// for a redelivery is not in it.
	Handling         *hdrhistogram.Histogram
	PublishFromSend  *hdrhistogram.Histogram // intent to the first accepted outcome
	EndToEndFromSend *hdrhistogram.Histogram // intent to the first delivery

	OutOfRange   int64         // values below 0 or above an hour: in no histogram
	Negative     int64         // those below 0: the clock of a process is skewed, or a message left before it was due
	MostNegative time.Duration // the lowest of them, so below 0; 0: there is none
}

// longest is what a histogram can hold: an hour, in ns.
const longest = 3_600_000_000_000

func newLatencies() Latencies {
	h := func() *hdrhistogram.Histogram { return hdrhistogram.New(1, longest, 3) }
	return Latencies{Lateness: h(), Publish: h(), EndToEnd: h(), Effect: h(), Acked: h(), Handling: h(), PublishFromSend: h(), EndToEndFromSend: h()}
}

func (l *Latencies) add(m *message) {
	l.record(l.Lateness, m.intended-m.due)
	if m.isAccepted() {
		l.record(l.Publish, m.acceptedAt-m.due)
		l.record(l.PublishFromSend, m.acceptedAt-m.intended)
	}
	if m.deliveries > 0 {
		l.record(l.EndToEnd, m.firstDelivery-m.due)
		l.record(l.EndToEndFromSend, m.firstDelivery-m.intended)
	}
	if m.effectRecords > 0 {
		l.record(l.Effect, m.firstEffect-m.due)
	}
	if m.acks > 0 {
		l.record(l.Acked, m.firstAck-m.due)
	}
	switch {
	case m.deliveries == 0:
	case m.effectRecords > 0:
		l.record(l.Handling, m.firstEffect-m.effectFrom)
	case m.acks > 0:
		l.record(l.Handling, m.firstAck-m.ackFrom)
	}
}

func (l *Latencies) record(h *hdrhistogram.Histogram, ns int64) {
	switch {
	case ns < 0:
		l.OutOfRange++
		l.Negative++
		l.MostNegative = min(l.MostNegative, time.Duration(ns))
	case ns > longest || h.RecordValue(ns) != nil:
		l.OutOfRange++
	}
}
