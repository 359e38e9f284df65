package fault

import "context"

// ConsumerJoinsLeaves lets a second consumer join in the middle of the load, the
// first one leave in order, and a third one join.
func ConsumerJoinsLeaves() Fault {
	return Fault{
		Name:    "consumer-joins-leaves",
		Summary: "a consumer joins in the middle of the load, another leaves in order, and one more joins",
		Trials:  3,
		Means: func(t Target) string {
			if t.Broker == "" {
				return "the queue lives in the service's process: no other can join it"
			}
			return ""
		},
		Run: func(ctx context.Context, s Scene) error {
			n := s.Target().Messages
			first, err := s.Start(ctx, Role{Consumer: &Consumer{}})
			if err != nil {
				return err
			}
			// Four seconds, as long as a group needs to deal its partitions out
			// anew, and three times at that.
			producer, err := load(ctx, s, Role{Producer: &Producer{Count: n, Rate: float64(n) / 4}})
			if err != nil {
				return err
			}
			if err := s.Delivered(ctx, int64(n/8+uint64(s.Moment()*float64(n)/8))); err != nil {
				s.Invalid("%v", err)
				return ctx.Err()
			}
			s.Asked()
			if _, err := s.Start(ctx, Role{Consumer: &Consumer{}}); err != nil {
				return err
			}
			s.Confirmed()
			if err := first.Stop(ctx); err != nil {
				return err
			}
			if _, err := s.Start(ctx, Role{Consumer: &Consumer{}}); err != nil {
				return err
			}
			s.Healed()
			return s.Finish(ctx, producer)
		},
	}
}
