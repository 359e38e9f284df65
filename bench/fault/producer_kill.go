package fault

import (
	"context"
	"syscall"
	"time"
)

// ProducerKill kills a producer under load. What it had accepted must be there;
// what had no answer may be.
func ProducerKill() Fault {
	return Fault{
		Name:    "producer-kill",
		Summary: "a producer gets SIGKILL under load: nobody knows what became of what it sent last",
		Run: func(ctx context.Context, s Scene) error {
			own := &Producer{Count: s.Target().Messages}
			if s.Target().Broker == "" {
				// Handlers half as fast as the load, so that there is a backlog to lose.
				slow := &Consumer{HandleDelay: time.Duration(4 / s.Target().Rate * float64(time.Second))}
				return killProducer(ctx, s, Role{Producer: own, Consumer: slow, Victim: true})
			}
			if _, err := s.Start(ctx, Role{Consumer: &Consumer{}}); err != nil {
				return err
			}
			if err := killProducer(ctx, s, Role{Producer: own, Victim: true}); err != nil {
				return err
			}
			s.Healed()
			probe, err := s.Probe(ctx)
			if err != nil {
				return err
			}
			return s.Finish(ctx, probe)
		},
		// In a process the producer dies with a consumer that may hold nothing.
		EmptyHand: true,
	}
}

// killProducer kills a producer in the middle of its load.
func killProducer(ctx context.Context, s Scene, r Role) error {
	victim, err := load(ctx, s, r)
	if err != nil {
		return err
	}
	if err := whilePublishing(ctx, s); err != nil {
		return err
	}
	s.Asked()
	if err := victim.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	s.Confirmed()
	return nil
}
