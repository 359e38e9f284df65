package trial

import (
	"context"
	"fmt"
	"time"

	"queuelab/bench/ledger"
)

// Floor measures what the harness itself adds to every number: the memory queue
// at a thousand messages a second, recorded like any other. It takes four seconds.
func (l *Lab) Floor(ctx context.Context) (*Floor, error) {
	const rate = 1000
	s := Spec{
		Setting: Settings()[0], Test: TestLatency, Fault: FaultNone,
		Load: LoadParams{Rate: rate, Warmup: 500 * time.Millisecond, Duration: 2 * time.Second, Payload: 100},
	}
	m, err := l.latency(ctx, s, 1)
	if err != nil {
		return nil, err
	}
	if len(m.invalid) > 0 {
		return nil, fmt.Errorf("%s", m.invalid[0])
	}
	nanos, err := l.recordCost()
	if err != nil {
		return nil, err
	}
	return &Floor{RatePerSecond: rate, EndToEnd: percentiles(m.report.EndToEnd), RecordNanos: nanos}, nil
}

// recordCost is what all the records of one message take, in nanoseconds, as a
// publisher and a consumer of this process write them.
func (l *Lab) recordCost() (float64, error) {
	const messages = 20_000
	trial := l.nextTrial()
	defer l.removeLedgers(trial)
	w, err := ledger.Create(l.ledgerPath(trial, producerProcess), producerProcess)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for seq := range uint64(messages) {
		for _, e := range []ledger.Event{ledger.Intent, ledger.Accepted, ledger.Delivered, ledger.Effect, ledger.Acked} {
			w.Append(ledger.Record{Event: e, Trial: trial, Producer: 1, Seq: seq, At: ledger.Now()})
		}
	}
	took := time.Since(began)
	return float64(took.Nanoseconds()) / messages, w.Close()
}
