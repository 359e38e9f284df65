package fault

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// What fills several segments of a topic that keeps one or two, with few messages;
// and how long nothing must be deleted for deletion to be over: a few of the
// looks that the broker of this setting takes.
const (
	retainedPayload = 10 << 10
	deletionOver    = 2 * time.Second
)

// beyondRetention is the queue limit of Kafka, which counts bytes and asks nobody.
// A group that has read and committed a part is away while more is published than
// the topic keeps; when it comes back the offset that it committed is no more.
func beyondRetention(ctx context.Context, s Scene) error {
	if err := s.Settle(ctx); err != nil {
		return err
	}
	n := s.Target().Messages
	read := n / 10
	away, err := s.Start(ctx, Role{Consumer: &Consumer{}})
	if err != nil {
		return err
	}
	early, err := load(ctx, s, Role{Producer: &Producer{Count: read}})
	if err != nil {
		return err
	}
	if err := errors.Join(early.Produced(ctx), early.Stop(ctx), s.Delivered(ctx, int64(read))); err != nil {
		return err
	}
	if err := away.Stop(ctx); err != nil {
		return err
	}
	s.Asked()
	producer, err := load(ctx, s, Role{Producer: &Producer{Count: n, Rate: s.Target().Rate, Payload: retainedPayload}})
	if err != nil {
		return err
	}
	if err := errors.Join(producer.Produced(ctx), producer.Stop(ctx)); err != nil {
		return err
	}
	accepted, err := s.Accepted()
	if err != nil {
		return err
	}
	unread := accepted - int64(read)
	if err := untilDeleted(ctx, s, unread); err != nil {
		s.Invalid("%v", err)
		return ctx.Err()
	}
	held, err := s.Freeze(ctx)
	if err != nil {
		return err
	}
	s.Confirmed()
	// What lies before the beginning of the log: the rest begins there.
	s.Facts().Over += unread - held
	s.Note("a topic with a limit of bytes held %d of %d messages that its group had not read", held, unread)
	if _, err := s.Start(ctx, Role{Consumer: &Consumer{}}); err != nil {
		return err
	}
	s.Healed()
	// Until it is read, so that the probe does not push it out.
	if err := s.Delivered(ctx, int64(read)+held); err != nil {
		s.Note("the group did not get all that was held: %v", err)
	}
	probe, err := s.Probe(ctx)
	if err != nil {
		return err
	}
	return s.Finish(ctx, probe)
}

// untilDeleted waits until retention has deleted some of the unread messages, and
// for a while no more of them.
func untilDeleted(ctx context.Context, s Scene, unread int64) error {
	last, since := unread, time.Now()
	err := until(ctx, time.Minute, 100*time.Millisecond, "retention to delete what nobody had read", func() (bool, error) {
		n, err := waiting(ctx, s)
		if n != last {
			last, since = n, time.Now()
		}
		return n < unread && time.Since(since) > deletionOver, err
	})
	if err != nil {
		return fmt.Errorf("%w: the queue holds %d of %d", err, last, unread)
	}
	return nil
}
