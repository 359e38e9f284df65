package fault

import (
	"context"
	"fmt"
)

// BrokerKill freezes a backlog with no consumer, since one that keeps up would
// hide what the broker forgets; kills the broker with SIGKILL and restarts it;
// and reads everything back.
func BrokerKill() Fault {
	return Fault{
		Name:    "broker-kill",
		Summary: "the broker gets SIGKILL with a frozen backlog and no consumer, and is restarted",
		Means:   hasBroker, OwnBroker: true,
		Run: func(ctx context.Context, s Scene) error {
			if err := frozenBacklog(ctx, s); err != nil {
				return err
			}
			if err := s.Written(ctx); err != nil {
				s.Invalid("%v", err)
				return nil
			}
			s.Asked()
			if err := s.Broker().Kill(ctx); err != nil {
				return err
			}
			s.Confirmed()
			return restarted(ctx, s)
		},
	}
}

// hasBroker is for faults of the broker's process.
func hasBroker(t Target) string {
	if t.Broker == "" {
		return "the queue lives in the service's process: there is no broker to strike"
	}
	return ""
}

// frozenBacklog publishes everything with no consumer.
func frozenBacklog(ctx context.Context, s Scene) error {
	if s.Target().Caps.Stored {
		if err := s.Settle(ctx); err != nil {
			return err
		}
	}
	producer, err := s.Start(ctx, Role{Producer: &Producer{Count: s.Target().Messages}})
	if err != nil {
		return err
	}
	if err := producer.Produce(); err != nil {
		return err
	}
	if err := producer.Produced(ctx); err != nil {
		return err
	}
	if err := producer.Stop(ctx); err != nil {
		return err
	}
	if !s.Target().Caps.Stored {
		return nil
	}
	_, err = s.Freeze(ctx)
	return err
}

// restarted starts the broker again and reads back what it has.
func restarted(ctx context.Context, s Scene) error {
	if err := s.Broker().Restart(ctx); err != nil {
		return fmt.Errorf("restart the broker: %w", err)
	}
	return readBack(ctx, s)
}

// readBack consumes what a broker has after its heal, and proves that it takes
// new messages.
func readBack(ctx context.Context, s Scene) error {
	if _, err := s.Start(ctx, Role{Consumer: &Consumer{}}); err != nil {
		return err
	}
	return readOn(ctx, s)
}

// readOn is readBack with a consumer that reads already.
func readOn(ctx context.Context, s Scene) error {
	s.Healed()
	probe, err := s.Probe(ctx)
	if err != nil {
		return err
	}
	return s.Finish(ctx, probe)
}
