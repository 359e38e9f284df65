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
	nanos, err := ledger.RecordCost(ctx, l.dir)
	if err != nil {
		return nil, err
	}
	return &Floor{RatePerSecond: rate, EndToEnd: percentiles(m.report.EndToEnd), RecordNanos: nanos}, nil
}
