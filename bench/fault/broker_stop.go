package fault

import (
	"context"
	"errors"
	"time"
)

// BrokerStop is BrokerKill by SIGTERM, which a broker can answer by writing what
// it has.
func BrokerStop() Fault {
	return Fault{
		Name:      "broker-stop",
		Summary:   "the broker gets SIGTERM with a frozen backlog and no consumer, ends in order, and is restarted",
		Trials:    3,
		OwnBroker: true,
		Means:     hasBroker,
		Run: func(ctx context.Context, s Scene) error {
			if err := frozenBacklog(ctx, s); err != nil {
				return err
			}
			s.Asked()
			began := time.Now()
			err := s.Broker().Terminate(ctx)
			if ctx.Err() != nil {
				return errors.Join(err, undo(ctx, s.Broker().Restart))
			}
			if err != nil {
				s.Invalid("%v", err)
			}
			s.Confirmed()
			s.Note("it ended %.1f s after SIGTERM", time.Since(began).Seconds())
			return restarted(ctx, s)
		},
	}
}
