package fault

import "context"

// None is the control: load, and nothing else.
func None() Fault {
	return Fault{Name: "none", Summary: "nothing is broken: the control", Trials: 3, Run: func(ctx context.Context, s Scene) error {
		n := s.Target().Messages
		if s.Target().Broker == "" {
			both, err := s.Start(ctx, Role{Producer: &Producer{Count: n, Rate: s.Target().Rate}, Consumer: &Consumer{}})
			if err != nil {
				return err
			}
			if err := both.Produce(); err != nil {
				return err
			}
			return s.Finish(ctx, both)
		}
		if _, err := s.Start(ctx, Role{Consumer: &Consumer{}}); err != nil {
			return err
		}
		producer, err := s.Start(ctx, Role{Producer: &Producer{Count: n}})
		if err != nil {
			return err
		}
		if err := producer.Produce(); err != nil {
			return err
		}
		return s.Finish(ctx, producer)
	}}
}
