package fault

import (
	"context"
	"time"
)

// ConsumerKillSlowHandler kills a consumer in a handler that takes its time. A
// queue that is told by a timer how far its consumer has got has been told by
// then that the message is done, and it is not.
func ConsumerKillSlowHandler() Fault {
	return Fault{
		Name:    "consumer-kill-slow-handler",
		Summary: "a consumer kills itself with SIGKILL in a handler of 300 ms, before its effect",
		Trials:  3,
		Means: func(t Target) string {
			if t.Broker == "" {
				return "queue, producer and consumer are one process: see consumer-kill-mid-handle"
			}
			return ""
		},
		Run: func(ctx context.Context, s Scene) error {
			victim, err := s.Start(ctx, Role{
				Consumer: &Consumer{Point: MidHandle, Nth: 3 + int64(s.Moment()*5), HandleDelay: 300 * time.Millisecond},
				Victim:   true,
			})
			if err != nil {
				return err
			}
			producer, err := load(ctx, s, Role{Producer: &Producer{Count: s.Target().Messages}})
			if err != nil {
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
		},
	}
}
