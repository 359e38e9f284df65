package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"queuelab/bench/broker"
	"queuelab/queue"
)

// storageMissing is for faults of the file system that a broker is on.
func storageMissing() string {
	if err := broker.StorageAvailable(); err != nil {
		return err.Error()
	}
	return ""
}

// keepsSomething is for faults of what a broker has stored.
func keepsSomething(t Target) string {
	if why := hasBroker(t); why != "" {
		return why
	}
	if !t.Caps.Stored {
		return "the queue stores nothing that a disk could lose"
	}
	return ""
}

// struckLoad freezes a backlog that is certain to be on its way to the disk, and
// returns a producer that goes on publishing: what it sends as the fault strikes
// ends unknown. All that comes after settled counts as the trial's.
func struckLoad(ctx context.Context, s Scene) (under Node, settled time.Time, err error) {
	if err := s.Settle(ctx); err != nil {
		return nil, settled, err
	}
	if err := s.Broker().SettleStorage(ctx); err != nil {
		return nil, settled, err
	}
	settled = time.Now()
	first, err := load(ctx, s, Role{Producer: &Producer{Count: s.Target().Messages}})
	if err != nil {
		return nil, settled, err
	}
	if err := errors.Join(first.Produced(ctx), first.Stop(ctx)); err != nil {
		return nil, settled, err
	}
	frozen, err := s.Freeze(ctx)
	if err != nil {
		return nil, settled, err
	}
	// More than can be sent until it is stopped.
	under, err = load(ctx, s, Role{Producer: &Producer{Count: 1 << 20}})
	if err != nil {
		return nil, settled, err
	}
	err = until(ctx, 10*time.Second, 20*time.Millisecond, "the load to be under way", func() (bool, error) {
		n, err := waiting(ctx, s)
		return n > frozen, err
	})
	return under, settled, err
}

// waiting is how many messages the queue holds.
func waiting(ctx context.Context, s Scene) (int64, error) {
	looker, ok := s.Queue().(queue.Backlogger)
	if !ok {
		return 0, errors.New("the queue cannot look into itself")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	b, err := looker.Backlog(ctx)
	if err != nil {
		return 0, fmt.Errorf("look into the queue: %w", err)
	}
	return max(b.Ready, 0) + max(b.InFlight, 0), nil
}

// standing is how many messages the queue holds once that stands still. A broker
// that was just restarted may not tell at first.
func standing(ctx context.Context, s Scene) (n int64, err error) {
	last, same := int64(-1), 0
	var asked error
	err = until(ctx, 20*time.Second, 100*time.Millisecond, "the backlog to stand still", func() (bool, error) {
		if n, asked = waiting(ctx, s); asked != nil {
			same = 0
			return false, nil //nolint:nilerr // it is asked again, and told once time is up
		}
		if n == last {
			same++
		} else {
			last, same = n, 0
		}
		return same >= 3, nil
	})
	return n, errors.Join(err, asked)
}

// queueRestarted starts the broker again and reads back what it has.
func queueRestarted(ctx context.Context, s Scene) error {
	if err := s.Broker().Restart(ctx); err != nil {
		return fmt.Errorf("restart the broker: %w", err)
	}
	return queueReadBack(ctx, s)
}

// queueReadBack reads back what a restarted broker has, once the queue can be
// looked into. One that cannot is no loss of messages, and not counted as one; but
// one that is there and lets no consumer in has lost them all, until somebody
// repairs it by hand: RabbitMQ 3.10 writes the file that a quorum queue is started
// from anew when its log fails, and on a full disk that leaves an empty one.
func queueReadBack(ctx context.Context, s Scene) error {
	if _, err := standing(ctx, s); err != nil {
		s.Invalid("the queue did not come back: %v", err)
		return ctx.Err()
	}
	var failed, refused error // what the process says, and what the queue says itself
	err := until(ctx, usableWithin, time.Second/2, "a consumer to be let in", func() (bool, error) {
		if _, failed = s.Start(ctx, Role{Consumer: &Consumer{}}); failed == nil {
			return true, nil
		}
		short, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		var c queue.Consumer
		if c, refused = s.Queue().Consumer(short); refused == nil {
			_ = c.Close() // it took nothing
		}
		return false, nil
	})
	switch {
	case err == nil:
		return readOn(ctx, s)
	case ctx.Err() != nil:
		return ctx.Err()
	case refused == nil:
		return fmt.Errorf("the queue lets consumers in, and the lab's does not start: %w", failed)
	}
	accepted, err := s.Accepted()
	if err != nil {
		return err
	}
	s.Facts().Unusable = accepted
	s.Note("the broker is back and the queue is not: it let no consumer in for %v (%v)", usableWithin, refused)
	s.Healed()
	return s.Finish(ctx)
}

// usableWithin is how long a queue that can be looked into may refuse consumers.
const usableWithin = 20 * time.Second

// until waits for a fact.
func until(ctx context.Context, atMost, every time.Duration, what string, holds func() (bool, error)) error {
	for deadline := time.Now().Add(atMost); ; {
		ok, err := holds()
		if ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %v in vain for %s", atMost, what)
		}
		if err := pass(ctx, every); err != nil {
			return err
		}
	}
}

// syncsEachSecond reports whether the broker promises that what it accepted is
// synced a second later.
func syncsEachSecond(ctx context.Context, b *broker.Broker) (bool, error) {
	if b.Kind() != "redis" {
		return false, nil
	}
	settings, err := b.Settings(ctx)
	return settings["appendonly"] == "yes" && strings.EqualFold(settings["appendfsync"], "everysec"), err
}
