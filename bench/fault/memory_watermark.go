package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"queuelab/bench/broker"
)

// Publishers are blocked for longer than they wait for a confirm.
const (
	blockedFor  = 3 * time.Second
	confirmWait = "confirm-timeout=1s"
	noMemory    = "{absolute,1}"
)

// MemoryWatermark lets RabbitMQ find that it uses more memory than it may: it reads
// no more from those who publish, until it uses less. It refuses nothing: what was
// written has no answer until then, and is unknown to who does not wait so long.
func MemoryWatermark() Fault {
	return Fault{
		Name:      "memory-watermark",
		Summary:   "RabbitMQ is above its memory watermark for 3 s: it blocks who publishes, and goes on serving who consumes",
		Trials:    3, // nothing of it depends on the moment
		OwnBroker: true,
		Means: func(t Target) string {
			if t.Broker != "rabbitmq" {
				return "the broker has no memory watermark; see memory-end and out-of-memory"
			}
			return ""
		},
		Run: memoryWatermark,
	}
}

func memoryWatermark(ctx context.Context, s Scene) error {
	if err := s.Settle(ctx); err != nil {
		return err
	}
	n := s.Target().Messages
	first, err := load(ctx, s, Role{Producer: &Producer{Count: n / 2}})
	if err != nil {
		return err
	}
	if err := errors.Join(first.Produced(ctx), first.Stop(ctx)); err != nil {
		return err
	}
	held, err := s.Freeze(ctx)
	if err != nil {
		return err
	}
	rest, err := s.Start(ctx, Role{QueueURL: s.QueueURL("", confirmWait), Producer: &Producer{Count: n - n/2}})
	if err != nil {
		return err
	}
	s.Asked()
	was, err := s.Broker().SetMemoryWatermark(ctx, noMemory)
	if errors.Is(err, broker.ErrNoMemoryLimit) {
		s.Invalid("%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	putBack := func(ctx context.Context) error { _, err := s.Broker().SetMemoryWatermark(ctx, was); return err }
	err = whileBlocked(ctx, s, rest, held)
	if err := errors.Join(err, undo(ctx, putBack)); err != nil {
		return err
	}
	s.Healed()
	if err := rest.Produced(ctx); err != nil {
		return err
	}
	probe, err := s.Probe(ctx)
	if err != nil {
		return err
	}
	return s.Finish(ctx, probe)
}

// whileBlocked publishes what is blocked, and consumes what waited all the same.
func whileBlocked(ctx context.Context, s Scene, rest Node, held int64) error {
	if err := awaitBlocked(ctx, s.Broker().URL()); err != nil {
		return err
	}
	s.Confirmed()
	before, err := s.Accepted()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := rest.Produce(); err != nil {
		return err
	}
	if _, err := s.Start(ctx, Role{Consumer: &Consumer{}}); err != nil {
		return err
	}
	if err := s.Delivered(ctx, held); err != nil {
		s.Invalid("the consumer did not get what waited while publishers were blocked: %v", err)
		return ctx.Err()
	}
	if err := pass(ctx, blockedFor-time.Since(began)); err != nil {
		return err
	}
	after, err := s.Accepted()
	if err != nil {
		return err
	}
	taken, due := after-before, int64(s.Target().Messages/2)
	s.Note("the broker took %d of %d messages that were published while it blocked, and its consumer got the %d that waited", taken, due, held)
	if taken >= due/2 {
		s.Invalid("the broker took %d of %d messages while it blocked: it did not", taken, due)
	}
	return nil
}

// awaitBlocked returns once the broker has told a connection that it is blocked,
// which it tells those only that publish.
func awaitBlocked(ctx context.Context, url string) error {
	conn, err := amqp.Dial(url)
	if err != nil {
		return fmt.Errorf("connect to be blocked: %w", err)
	}
	defer func() { _ = conn.CloseDeadline(time.Now().Add(time.Second)) }() // a broker that does not read it may not answer
	told := conn.NotifyBlocked(make(chan amqp.Blocking, 1))
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open a channel to be blocked: %w", err)
	}
	// To a queue that nobody has: it goes nowhere.
	if err := ch.PublishWithContext(ctx, "", "queuelab.nowhere", false, false, amqp.Publishing{}); err != nil {
		return fmt.Errorf("publish to be blocked: %w", err)
	}
	late := time.NewTimer(10 * time.Second)
	defer late.Stop()
	select {
	case b := <-told:
		if !b.Active {
			return errors.New("the connection was closed before the broker blocked it")
		}
		return nil
	case <-late.C:
		return errors.New("the broker has a watermark of 1 byte, and blocked nobody within 10s")
	case <-ctx.Done():
		return ctx.Err()
	}
}
