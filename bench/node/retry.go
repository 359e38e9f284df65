package node

import (
	"context"
	"time"

	"queuelab/bench/ledger"
	"queuelab/queue"
)

// persistent publishes again, with the same id, what ended unknown. It stands
// above the ledger, which so sees every attempt; and it is the only one that
// retries, since no client library may.
type persistent struct {
	queue.Publisher
	retries int
}

// retryTimeout bounds one more attempt, retryPause is between two.
const (
	retryTimeout = 10 * time.Second
	retryPause   = 200 * time.Millisecond
)

// Publish implements queue.Publisher. A message of which any attempt was accepted
// is; one whose first attempt is unknown stays so, though a later one be rejected.
func (p persistent) Publish(ctx context.Context, msgs ...queue.Message) error {
	err := p.Publisher.Publish(ctx, msgs...)
	if err == nil {
		return nil
	}
	outcomes := make([]queue.Outcome, len(msgs))
	accepted := true
	for i, m := range msgs {
		outcomes[i] = queue.OutcomeOf(err, i)
		for try := 0; outcomes[i] == queue.Unknown && try < p.retries; try++ {
			// The call's own time may be over, and the due time is that of another.
			again, cancel := context.WithTimeout(ledger.WithDue(context.WithoutCancel(ctx), nil), retryTimeout)
			if sleep(again, retryPause) && p.Publisher.Publish(again, m) == nil {
				outcomes[i] = queue.Accepted
			}
			cancel()
		}
		accepted = accepted && outcomes[i] == queue.Accepted
	}
	if accepted {
		return nil
	}
	return &queue.PublishError{Outcomes: outcomes, Err: err}
}
