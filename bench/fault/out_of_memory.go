package fault

import (
	"context"
	"errors"
	"runtime"
	"time"

	"queuelab/bench/broker"
)

// What Redis may take more than it has when its memory begins to end, and the load
// that takes it: more than that even where it has much to spare, and little enough
// for any machine if the limit fails.
const (
	memoryMore    = 16 << 20
	heavyPayload  = 64 << 10
	heavyMessages = 2048
)

// OutOfMemory lets an unbounded queue grow until memory ends, and its broker dies
// of it. Nobody refuses anything before: what was accepted and is on no disk is
// gone. The end is a limit of the broker's own, so that the machine has enough.
func OutOfMemory() Fault {
	return Fault{
		Name:      "out-of-memory",
		Summary:   "an unbounded queue grows until the memory ends that Redis may take, and Redis dies of it under load; it is restarted",
		Trials:    3,
		OwnBroker: true,
		Means: func(t Target) string {
			if t.Broker == "" {
				return "a full queue in the service's process makes its publisher wait"
			}
			return isRedisStore(t)
		},
		Missing: func() string {
			if runtime.GOOS != "linux" {
				return "the memory of one process can be limited on Linux only"
			}
			return ""
		},
		Run: outOfMemory,
	}
}

func outOfMemory(ctx context.Context, s Scene) error {
	b := s.Broker()
	if err := frozenBacklog(ctx, s); err != nil {
		return err
	}
	if err := s.Written(ctx); err != nil {
		s.Invalid("%v", err)
		return nil
	}
	answersFirst, err := syncsEachSecond(ctx, b)
	if err != nil {
		return err
	}
	heavy, err := s.Start(ctx, Role{Producer: &Producer{Count: heavyMessages, Rate: s.Target().Rate / 2, Payload: heavyPayload}})
	if err != nil {
		return err
	}
	s.Asked()
	err = b.LimitMemory(ctx, memoryMore)
	if errors.Is(err, broker.ErrNoMemoryLimit) {
		s.Invalid("%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	how, err := untilItDies(ctx, s, heavy)
	if err != nil {
		s.Invalid("Redis, which may take %d MB more, outlived %d messages of %d kB: %v", memoryMore>>20, heavyMessages, heavyPayload>>10, err)
		// The limit is no concern of the next trial.
		return errors.Join(ctx.Err(), undo(ctx, b.Kill), undo(ctx, b.Restart))
	}
	accepted, err := s.Accepted()
	if err != nil {
		return err
	}
	s.Facts().Backlog = accepted
	if answersFirst {
		s.Facts().Window = postponed.Milliseconds()
	}
	s.Note("Redis ended after %d messages: %s", accepted, how)
	return restarted(ctx, s)
}

// untilItDies lets the load run into the end of memory, and says how the broker
// ended.
func untilItDies(ctx context.Context, s Scene, heavy Node) (how string, err error) {
	if err := heavy.Produce(); err != nil {
		return "", err
	}
	ending, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	how, err = s.Broker().AwaitEnd(ending)
	if err == nil {
		s.Confirmed()
	}
	return how, errors.Join(err, heavy.Stop(ctx))
}
