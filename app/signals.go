package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/backends"
	"queuelab/queue"
)

// signals is the queue that brings start signals to every instance; without one
// they are looked for in the database.
type signals struct {
	queue     queue.Queue
	publisher queue.Publisher
	consumer  queue.Consumer
}

// startChannel is where signals go that nobody has asked to go elsewhere: a
// channel of the Redis of admission. In a cluster every node hears every channel,
// so that of the first one does.
func startChannel(redisURL string) string {
	u, err := url.Parse(redisURL)
	switch {
	case err != nil:
		return ""
	case u.Scheme == "redis+cluster":
		u.Host, _, _ = strings.Cut(u.Host, ",")
	case u.Scheme != "redis":
		return ""
	}
	u.Scheme, u.RawQuery = "redis+pubsub", "queue=seckill-start"
	return u.String()
}

// openSignals opens the queue of start signals. instance is a number that no
// other instance has at the same time.
func openSignals(ctx context.Context, f *flags, instance int) (*signals, error) {
	raw := f.StartQueue
	if raw == "" {
		raw = startChannel(f.Redis)
	}
	s := &signals{}
	if raw == "" {
		return s, nil
	}
	var err error
	if s.queue, err = openForAll(ctx, raw, instance); err == nil {
		s.publisher, err = s.queue.Publisher(ctx)
	}
	if err == nil {
		s.consumer, err = s.queue.Consumer(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("queue of start signals: %w", err), s.close())
	}
	return s, nil
}

// openForAll opens a queue so that this instance gets all of its messages: as a
// group of its own, or as one of those that a broadcast reaches.
func openForAll(ctx context.Context, raw string, instance int) (queue.Queue, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return backends.Open(ctx, raw) // it says what is wrong, without the password
	}
	values := u.Query()
	values.Set("group", fmt.Sprintf("instance-%d", instance))
	own := *u
	own.RawQuery = values.Encode()
	q, err := backends.Open(ctx, own.String())
	if err != nil { // it may just have no groups
		if q, err = backends.Open(ctx, raw); err != nil {
			return nil, err
		}
	}
	if c := q.Capabilities(); !c.Shared || !c.Broadcast && !c.Groups {
		return nil, errors.Join(fmt.Errorf("--start-queue=%s does not bring every instance every message: use one that broadcasts, such as redis+pubsub, or that has groups, such as redis+streams or kafka",
			store.Redact(raw)), q.Close())
	}
	return q, nil
}

func (s *signals) close() error {
	if s == nil || s.queue == nil {
		return nil
	}
	var errs error
	if s.publisher != nil {
		errs = errors.Join(errs, s.publisher.Close())
	}
	if s.consumer != nil {
		errs = errors.Join(errs, s.consumer.Close())
	}
	return errors.Join(errs, s.queue.Close())
}

// newStarter gives and hears start signals.
func (s *service) newStarter() *sale.Starter {
	gate, _ := s.gate.(sale.Opener) // where there is none, the database alone lets in
	return &sale.Starter{Store: s.store, Gate: gate, Publisher: s.signals.publisher, Consumer: s.signals.consumer, Board: s.board, Log: s.log}
}
