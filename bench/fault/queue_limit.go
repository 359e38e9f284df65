package fault

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
)

// QueueLimit publishes more than a bounded queue holds while nobody consumes:
// what is beyond is rejected, or drops what was accepted before it.
func QueueLimit() Fault {
	return Fault{
		Name:    "queue-limit",
		Summary: "more is published than a bounded queue holds, with no consumer",
		Trials:  3,
		Means: func(t Target) string {
			switch {
			case t.Broker == "":
				return "a full queue in the service's process makes its publisher wait"
			case !t.Caps.Bounded && !t.Caps.DropsOldest:
				return "the queue has no limit"
			}
			return ""
		},
		Run: func(ctx context.Context, s Scene) error {
			if s.Target().Scheme == "kafka" { // it counts bytes
				return beyondRetention(ctx, s)
			}
			limit, err := limitOf(s)
			if err != nil {
				return err
			}
			if err := s.Settle(ctx); err != nil {
				return err
			}
			count := limit + s.Target().Messages
			s.Asked()
			producer, err := load(ctx, s, Role{Producer: &Producer{Count: count, Rate: s.Target().Rate}})
			if err != nil {
				return err
			}
			if err := producer.Produced(ctx); err != nil {
				return err
			}
			if err := producer.Stop(ctx); err != nil {
				return err
			}
			held, err := s.Freeze(ctx)
			if err != nil {
				return err
			}
			s.Confirmed()
			s.Facts().Over += int64(count - limit)
			s.Note("a queue of at most %d held %d of %d messages", limit, held, count)
			if _, err := s.Start(ctx, Role{Consumer: &Consumer{}}); err != nil {
				return err
			}
			s.Healed()
			// Until there is room: the probe is not what is tested.
			if err := s.Delivered(ctx, held/4); err != nil {
				return err
			}
			probe, err := s.Probe(ctx)
			if err != nil {
				return err
			}
			return s.Finish(ctx, probe)
		},
	}
}

// limitOf reads how many messages the queue holds from its URL.
func limitOf(s Scene) (uint64, error) {
	p, err := parameters(s)
	if err != nil {
		return 0, err
	}
	text := cmp.Or(p.Get("maxlen"), p.Get("max-length"), p.Get("capacity"))
	limit, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("the queue's limit: want maxlen, max-length or capacity in its URL: %w", err)
	}
	return limit, nil
}
