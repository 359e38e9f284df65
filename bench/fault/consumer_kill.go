package fault

import (
	"context"
	"time"
)

// ConsumerKillOnReceive and its like let a consumer kill itself under load, at a
// named place of its work, and a second one take over.
func ConsumerKillOnReceive() Fault {
	return consumerKill("consumer-kill-on-receive", "a consumer kills itself with SIGKILL as it receives, before its handler", OnReceive)
}

// ConsumerKillMidHandle kills in the handler.
func ConsumerKillMidHandle() Fault {
	return consumerKill("consumer-kill-mid-handle", "a consumer kills itself with SIGKILL in the handler, before its effect", MidHandle)
}

// ConsumerKillBeforeAck kills between the effect's commit and the ack.
func ConsumerKillBeforeAck() Fault {
	return consumerKill("consumer-kill-before-ack", "a consumer kills itself with SIGKILL after its commit, before its ack", BeforeAck)
}

// ConsumerKillAfterAck kills with nothing in hand.
func ConsumerKillAfterAck() Fault {
	f := consumerKill("consumer-kill-after-ack", "a consumer kills itself with SIGKILL after its ack returned", AfterAck)
	f.EmptyHand = true
	return f
}

func consumerKill(name, summary, place string) Fault {
	return Fault{Name: name, Summary: summary, Trials: 3, Run: func(ctx context.Context, s Scene) error {
		if s.Target().Broker == "" {
			return processKill(ctx, s, place)
		}
		n := s.Target().Messages
		victim, err := s.Start(ctx, Role{Consumer: &Consumer{Point: place, Nth: int64(n / 4)}, Victim: true})
		if err != nil {
			return err
		}
		producer, err := s.Start(ctx, Role{Producer: &Producer{Count: n}})
		if err != nil {
			return err
		}
		if err := producer.Produce(); err != nil {
			return err
		}
		if !struck(ctx, s, victim) {
			return nil
		}
		if _, err := s.Start(ctx, Role{Consumer: &Consumer{}}); err != nil {
			return err
		}
		s.Healed()
		return s.Finish(ctx, producer)
	}}
}

// processKill is the same for a queue in a process: its producer and consumer
// are one process, which dies as a whole; what is published after it belongs to
// another queue.
func processKill(ctx context.Context, s Scene, place string) error {
	n := s.Target().Messages
	victim, err := s.Start(ctx, Role{
		Producer: &Producer{Count: n, Rate: s.Target().Rate},
		// Handlers slower than the load, so that there is a backlog to lose.
		Consumer: &Consumer{Point: place, Nth: int64(n / 8), HandleDelay: 4 * time.Millisecond},
		Victim:   true,
	})
	if err != nil {
		return err
	}
	if err := victim.Produce(); err != nil {
		return err
	}
	struck(ctx, s, victim)
	return nil
}

// struck waits for a victim's death. A victim that did not die as it should
// proves nothing.
func struck(ctx context.Context, s Scene, victim Node) bool {
	s.Asked()
	dying, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := victim.Struck(dying); err != nil {
		s.Invalid("%v", err)
		return false
	}
	s.Confirmed()
	return true
}
