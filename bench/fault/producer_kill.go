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
			n := s.Target().Messages
			own := &Producer{Count: n}
			if s.Target().Broker == "" {
				// Handlers half as fast as the load, so that there is a backlog to lose;
				// and early, while it still publishes.
				slow := &Consumer{HandleDelay: time.Duration(4 / s.Target().Rate * float64(time.Second))}
				_, err := killProducer(ctx, s, Role{Producer: own, Consumer: slow, Victim: true}, n/4)
				return err
			}
			if _, err := s.Start(ctx, Role{Consumer: &Consumer{}}); err != nil {
				return err
			}
			if killed, err := killProducer(ctx, s, Role{Producer: own, Victim: true}, n); !killed {
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

// killProducer reports whether the producer was killed in the middle of its load,
// after a part of n messages.
func killProducer(ctx context.Context, s Scene, r Role, n uint64) (bool, error) {
	victim, err := load(ctx, s, r)
	if err != nil {
		return false, err
	}
	if loaded, err := underLoadOf(ctx, s, n); !loaded {
		return false, err
	}
	s.Asked()
	if err := victim.Signal(syscall.SIGKILL); err != nil {
		return false, err
	}
	s.Confirmed()
	return true, nil
}
