package fault

import (
	"context"
	"time"

	"queuelab/queue"
)

// SlowConsumer lets the handler be three times slower than the load, so that most
// of it waits, and has it drained afterwards.
func SlowConsumer() Fault {
	return Fault{
		Name:    "slow-consumer",
		Summary: "the handler is far slower than the load: a backlog grows, and is drained later",
		Trials:  3,
		Run: func(ctx context.Context, s Scene) error {
			t := s.Target()
			// A producer has one message every 2 / Rate.
			slow := &Consumer{HandleDelay: time.Duration(6 / t.Rate * float64(time.Second))}
			own := &Producer{Count: t.Messages}
			consumer, producer := Role{Consumer: slow}, Role{Producer: own}
			if t.Broker == "" {
				producer.Consumer = slow
			} else if _, err := s.Start(ctx, consumer); err != nil {
				return err
			}
			s.Asked()
			node, err := load(ctx, s, producer)
			if err != nil {
				return err
			}
			if err := node.Produced(ctx); err != nil {
				return err
			}
			if err := fellBehind(ctx, s); err != nil {
				return err
			}
			s.Confirmed()
			s.Healed()
			return s.Finish(ctx, node)
		},
	}
}

// fellBehind notes how many messages wait, where the queue tells.
func fellBehind(ctx context.Context, s Scene) error {
	looker, ok := s.Queue().(queue.Backlogger)
	if !ok {
		return nil
	}
	b, err := looker.Backlog(ctx)
	if err != nil {
		return err
	}
	switch {
	case b.Ready == 0 && b.InFlight < 0:
		s.Note("the queue tells of none that waits: they may all be in the consumer's hand")
	case b.Ready == 0:
		s.Invalid("the slow consumer kept up: nothing waits once all is published")
	case b.Ready > 0:
		s.Note("%d of %d messages waited once all was published", b.Ready, s.Target().Messages)
	}
	return nil
}
