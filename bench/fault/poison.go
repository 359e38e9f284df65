package fault

import "context"

// PoisonAttempts is how often a consumer handles a message before it gives it up.
const PoisonAttempts = 5

// Poison publishes one message whose handler always fails. Its neighbours must
// be handled once each; it itself is given up after PoisonAttempts, as the
// queue counts them, or as the consumer does where the queue does not.
func Poison() Fault {
	return Fault{
		Name:    "poison",
		Summary: "the handler of one message always fails: it is dead-lettered after 5 attempts, and its neighbours must not suffer",
		Trials:  3,
		Run: func(ctx context.Context, s Scene) error {
			t := s.Target()
			// Never 0, which is none, and never among those of a probe.
			bad := t.Messages/4 + uint64(s.Moment()*float64(t.Messages/2))
			handler := &Consumer{Poison: bad}
			role := Role{Producer: &Producer{Count: t.Messages}}
			if t.Broker == "" {
				role.Consumer = handler
			} else if _, err := s.Start(ctx, Role{Consumer: handler}); err != nil {
				return err
			}
			s.Asked()
			producer, err := load(ctx, s, role)
			if err != nil {
				return err
			}
			if s.Target().Caps.Nack { // known of every queue once a process has opened it
				// Each attempt but the last gives it back. Where that cannot be, the
				// consumer holds it and tries again.
				s.Facts().Events = PoisonAttempts - 1
			}
			if err := producer.Produced(ctx); err != nil {
				return err
			}
			s.Confirmed()
			s.Healed()
			return s.Finish(ctx, producer)
		},
	}
}
