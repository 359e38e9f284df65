package fault

import (
	"context"
	"syscall"
	"time"
)

// ZombieConsumer stops a consumer with a message in hand for longer than its
// lease, or on RabbitMQ than its heartbeats may stay away, so that another takes
// over, and lets it go on: two handlers of one message, and an ack that comes too
// late. A lease can fence the ack, never what the handler does elsewhere.
func ZombieConsumer() Fault {
	return Fault{
		Name:    "zombie-consumer",
		Summary: "a consumer stands still with a message in hand until its lease is over and another has taken over, and goes on",
		Trials:  3,
		Means: func(t Target) string {
			switch {
			case t.Broker == "":
				return "queue, producer and consumer are one process: they stand still and go on together"
			case t.Caps.Skips:
				return "what comes while the zombie stands still is skipped, and nothing is leased to anybody"
			}
			return ""
		},
		Run: zombie,
	}
}

func zombie(ctx context.Context, s Scene) error {
	// A handler that takes most of the time, so that the stop falls into it; and no
	// more messages than it can handle by itself, since a queue that hands out
	// without a bound leaves all of them to the zombie.
	const handle, most = 50 * time.Millisecond, 200
	t := s.Target()
	role := Role{Consumer: &Consumer{HandleDelay: handle}, Victim: true}
	// Leases are looked at every half of one.
	still := max(2*t.Lease+time.Second/2, 2*time.Second)
	if t.Scheme == "amqp" {
		// There is no lease: the connection is given up when it has been silent for
		// two heartbeats, which the broker looks for once in each.
		role.QueueURL, still = s.QueueURL("", "heartbeat=1s"), 5*time.Second
	}
	victim, err := s.Start(ctx, role)
	if err != nil {
		return err
	}
	producer, err := load(ctx, s, Role{Producer: &Producer{Count: min(t.Messages, most)}})
	if err != nil {
		return err
	}
	if err := s.Delivered(ctx, 5+int64(s.Moment()*10)); err != nil {
		s.Invalid("%v", err)
		return ctx.Err()
	}
	s.Asked()
	if err := victim.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	defer victim.Signal(syscall.SIGCONT) // it may have ended by then
	s.Confirmed()
	// Every subscriber of a broadcast gets everything: there is nothing to take over.
	if !t.Caps.Broadcast {
		if _, err := s.Start(ctx, Role{Consumer: &Consumer{}}); err != nil {
			return err
		}
	}
	if err := pass(ctx, still); err != nil {
		return err
	}
	if err := victim.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	s.Healed()
	return s.Finish(ctx, producer)
}
