package queuetest

import (
	"errors"
	"sync"
	"sync/atomic"

	"queuelab/queue"
)

// settleCases are about Ack and Nack.
func settleCases() []testCase {
	nack := func(c queue.Capabilities) bool { return c.Nack }
	return []testCase{
		{name: "AnAckedMessageDoesNotComeBack", run: ackIsFinal},
		{name: "SettlingTwiceIsErrSettled", run: settleTwice},
		{name: "AMixedBatchSettlesWhatIsLeft", run: mixedBatch},
		{name: "AckingALaterDeliverySettlesNoEarlierOne", when: atLeastOnce, run: ackOutOfOrder},
		{name: "ANackedMessageComesAgain", when: nack, run: nackRedelivers},
		{name: "CompetingConsumersShareWhatIsNacked",
			when: func(c queue.Capabilities) bool { return c.Nack && !c.Broadcast }, run: nackCompeting},
		{name: "NackIsUnsupportedAndSettlesNothing",
			when: func(c queue.Capabilities) bool { return !c.Nack }, run: nackUnsupported},
	}
}

func ackIsFinal(e *env) {
	q := e.open()
	c, p := e.both(q)
	e.publish(p, e.msgs(20, "k")...)
	ds := e.take(c, 20)
	e.ack(c, ds[0])
	e.ack(c, ds[1:]...)
	e.close("consumer", c)
	e.nothing(e.consumer(q), e.h.Redelivery+e.quiet)
}

func settleTwice(e *env) {
	c, p := e.both(e.open())
	e.publish(p, e.msgs(3, "k")...)
	ds := e.take(c, 3)
	settles := map[string]func(*queue.Delivery) error{
		"Ack": func(d *queue.Delivery) error { return c.Ack(e.ctx, d) },
	}
	if e.caps.Nack {
		settles["Nack"] = func(d *queue.Delivery) error { return c.Nack(e.ctx, d) }
	}
	e.ack(c, ds[0])
	for name, settle := range settles {
		if err := settle(ds[0]); !errors.Is(err, queue.ErrSettled) {
			e.Errorf("%s of an acked delivery: got %v, want ErrSettled", name, err)
		}
	}
	// Of many at once exactly one wins.
	var won, other atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			switch err := c.Ack(e.ctx, ds[1]); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, queue.ErrSettled):
				other.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || other.Load() != 0 {
		e.Errorf("8 concurrent acks of one delivery: got %d nil and %d errors other than ErrSettled, want 1 and 0", won.Load(), other.Load())
	}
	if !e.caps.Nack {
		e.ack(c, ds[2])
		return
	}
	if err := c.Nack(e.ctx, ds[2]); err != nil {
		e.Fatalf("nack: %v", err)
	}
	for name, settle := range settles {
		if err := settle(ds[2]); !errors.Is(err, queue.ErrSettled) {
			e.Errorf("%s of a nacked delivery: got %v, want ErrSettled", name, err)
		}
	}
	e.collect(messages(ds[2:]), c) // the late settles did not touch the new delivery
}

func mixedBatch(e *env) {
	q := e.open()
	c, p := e.both(q)
	e.publish(p, e.msgs(4, "k")...)
	ds := e.take(c, 4)
	e.ack(c, ds[0], ds[1])
	err := c.Ack(e.ctx, ds...)
	var se *queue.SettleError
	if !errors.As(err, &se) || len(se.Errs) != 4 {
		e.Fatalf("ack of 4 deliveries, 2 of them acked before: got %v, want a *SettleError with 4 entries", err)
	}
	for i, want := range []error{queue.ErrSettled, queue.ErrSettled, nil, nil} {
		if !errors.Is(se.Errs[i], want) {
			e.Errorf("delivery %d: got %v, want %v", i, se.Errs[i], want)
		}
	}
	if err := c.Ack(e.ctx, ds...); !errors.Is(err, queue.ErrSettled) {
		e.Errorf("ack of 4 acked deliveries: got %v, want ErrSettled", err)
	}
	e.close("consumer", c)
	e.nothing(e.consumer(q), e.h.Redelivery+e.quiet)
}

func ackOutOfOrder(e *env) {
	q := e.open()
	c, p := e.both(q)
	e.publish(p, e.msgs(5, "k")...)
	ds := e.take(c, 5)
	e.ack(c, ds[4])
	e.ack(c, ds[2])
	e.close("consumer", c)

	// A queue that remembers only how far it has got brings ds[2] and ds[4]
	// again as well, which at least once allows.
	left := messages([]*queue.Delivery{ds[0], ds[1], ds[3]})
	c = e.consumer(q)
	t := newTally(left)
	for !t.complete() {
		again := e.takeAgain(c, 1)
		t.add(again)
		e.ack(c, again...)
	}
	for {
		r, done := e.poll(c)
		if done {
			break
		}
		t.add(r)
		e.ack(c, r...)
	}
	for id, n := range t.seen {
		if n > 1 {
			e.Errorf("message %s came back %d times, want once", id, n)
		}
	}
	e.close("consumer", c)
	e.nothing(e.consumer(q), e.quiet)
}

func nackRedelivers(e *env) {
	c, p := e.both(e.open())
	ms := e.msgs(5, "k")
	e.publish(p, ms...)
	ds := e.take(c, 5)
	e.ack(c, ds[0])
	if err := c.Nack(e.ctx); err != nil {
		e.Errorf("Nack without deliveries: got %v, want nil", err)
	}
	if err := c.Nack(e.ctx, ds[1:]...); err != nil {
		e.Fatalf("nack: %v", err)
	}
	again := e.take(c, 4)
	t := newTally(ms[1:])
	t.add(again)
	t.report(e, e.h.Arrival)
	for _, d := range again {
		if e.caps.Attempts != queue.NotCounted && d.Attempt < 2 {
			e.Errorf("message %s after a nack: got attempt %d, want at least 2", d.ID, d.Attempt)
		}
	}
	e.ack(c, again...)
	e.nothing(c, e.quiet)
}

func nackCompeting(e *env) {
	q := e.open()
	a, p := e.both(q)
	b := e.consumer(q)
	ms := e.msgs(40, "")
	e.publish(p, ms...)

	var mu sync.Mutex
	deliveries := make(map[string]int)
	acked := newTally(ms)
	ctx, cancel := e.deadline(e.h.Arrival)
	defer cancel()
	var wg sync.WaitGroup
	for _, c := range []queue.Consumer{a, b} {
		wg.Go(func() {
			for !acked.complete() {
				ds, err := c.Receive(ctx, 4)
				if err != nil {
					return
				}
				for _, d := range ds {
					mu.Lock()
					deliveries[d.ID]++
					first := deliveries[d.ID] == 1
					mu.Unlock()
					settle := c.Ack
					if first {
						settle = c.Nack
					}
					if err := settle(e.ctx, d); err != nil {
						e.Errorf("settle: %v", err)
						return
					}
					if !first && acked.add([]*queue.Delivery{d}) {
						cancel()
					}
				}
			}
		})
	}
	wg.Wait()
	acked.report(e, e.h.Arrival)
	e.nothing(a, e.quiet)
	e.nothing(b, e.quiet)
}

func nackUnsupported(e *env) {
	c, p := e.both(e.open())
	e.publish(p, e.msgs(2, "k")...)
	ds := e.take(c, 2)
	if err := c.Nack(e.ctx, ds...); !errors.Is(err, queue.ErrUnsupported) {
		e.Errorf("Nack is not claimed: got %v, want ErrUnsupported", err)
	}
	if err := c.Nack(e.ctx); !errors.Is(err, queue.ErrUnsupported) {
		e.Errorf("Nack without deliveries, which asks whether the queue can: got %v, want ErrUnsupported", err)
	}
	for _, d := range ds {
		if d.Settled() {
			e.Errorf("message %s is settled by an unsupported Nack", d.ID)
		}
	}
	e.nothing(c, e.quiet)
	e.ack(c, ds...)
}
