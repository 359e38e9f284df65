package fault

import (
	"context"
	"errors"
	"time"
)

// frozen is longer than every client waits that has frozenQuery.
const frozen = 3 * time.Second

// BrokerFreeze stops the broker under load, as a machine does that swaps or a
// virtual one that is moved: connections stay open and nobody answers. What its
// publishers gave up waiting for is unknown, and may be done later.
func BrokerFreeze() Fault {
	return Fault{
		Name:      "broker-freeze",
		Summary:   "the broker gets SIGSTOP under load, longer than its clients wait, and goes on",
		OwnBroker: true,
		Means:     hasBroker,
		Run:       freeze,
	}
}

func freeze(ctx context.Context, s Scene) error {
	if s.Target().Caps.Stored {
		if err := s.Settle(ctx); err != nil {
			return err
		}
	}
	forProducer, forConsumer := frozenQuery(s.Target().Scheme)
	if _, err := s.Start(ctx, Role{Consumer: &Consumer{}, QueueURL: s.QueueURL("", forConsumer...)}); err != nil {
		return err
	}
	producer, err := load(ctx, s, Role{Producer: &Producer{Count: s.Target().Messages}, QueueURL: s.QueueURL("", forProducer...)})
	if err != nil {
		return err
	}
	if err := whilePublishing(ctx, s); err != nil {
		return err
	}
	s.Facts().Pops = 1 // the one consumer's: its client gives up, and the broker pops for it all the same
	s.Asked()
	err = s.Broker().Pause(ctx)
	if err == nil {
		s.Confirmed()
		err = pass(ctx, frozen)
	}
	if err := errors.Join(err, undo(ctx, s.Broker().Resume)); err != nil {
		return err
	}
	s.Healed()
	probe, err := s.Probe(ctx)
	if err != nil {
		return err
	}
	return s.Finish(ctx, producer, probe)
}

// frozenQuery are the parameters that make clients give up during the freeze. A
// consumer of Kafka or RabbitMQ has no such wait: a longer one would end its
// membership or its connection, which is what zombie-consumer and reset are about.
func frozenQuery(scheme string) (producer, consumer []string) {
	switch scheme {
	case "amqp":
		return []string{"confirm-timeout=1s"}, nil
	case "kafka":
		return []string{"timeout=1s"}, nil
	}
	return []string{"timeout=1s"}, []string{"timeout=1s"}
}
