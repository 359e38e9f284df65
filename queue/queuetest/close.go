package queuetest

import (
	"errors"
	"sync"
	"time"

	"queuelab/queue"
)

// closeCases are about ends: of consumers with messages in flight, of handles,
// and of the queue itself.
func closeCases() []testCase {
	atMostOnce := func(c queue.Capabilities) bool { return c.Guarantee == queue.AtMostOnce }
	return []testCase{
		{name: "AnUnsettledMessageComesBackAfterClose", when: atLeastOnce, run: abandonedComesBack},
		{name: "AnUnsettledMessageIsGoneAfterClose", when: atMostOnce, run: abandonedIsGone},
		{name: "CloseGivesBackWhatIsInFlight", when: atLeastOnce, run: closeInFlight},
		{name: "CloseUnblocksReceive", run: closeUnblocks},
		{name: "AfterCloseEverythingIsErrClosed", run: useAfterClose},
		{name: "AnAckAfterCloseIsAnError", when: atLeastOnce, run: ackAfterClose},
		{name: "ConcurrentCloseLosesNothing", run: concurrentClose},
		{name: "ClosingOneConsumerLeavesTheOthersAlone", run: closeOne},
		{name: "DeleteRemovesEverything", when: stored, run: deleteQueue},
	}
}

func abandonedComesBack(e *env) {
	q := e.open()
	c, p := e.both(q)
	ms := e.msgs(3, "k")
	e.publish(p, ms...)
	e.take(c, 3)
	e.close("consumer", c)
	c = e.consumer(q)
	e.collectAgain(ms, c)
	e.nothing(c, e.quiet)
}

func abandonedIsGone(e *env) {
	q := e.open()
	c, p := e.both(q)
	e.publish(p, e.msgs(3, "k")...)
	e.take(c, 3)
	e.close("consumer", c)
	c = e.consumer(q)
	e.nothing(c, e.h.Redelivery+e.quiet)
	ms := e.msgs(1, "k")
	e.publish(p, ms...)
	e.collect(ms, c)
}

// closeInFlight leaves messages in all three places that Close must think of:
// with the caller, in the consumer's own buffer, and still on the broker.
func closeInFlight(e *env) {
	q := e.open()
	c, p := e.both(q)
	ms := e.msgs(50, "k")
	e.publish(p, ms...)
	ds := e.take(c, 10)
	e.ack(c, ds[:5]...)
	e.close("consumer", c)
	acked := newTally(messages(ds[:5]))
	var left []queue.Message
	for _, m := range ms {
		if !acked.want[m.ID] {
			left = append(left, m)
		}
	}
	c = e.consumer(q)
	e.collectAgain(left, c)
	e.nothing(c, e.quiet)
}

func closeUnblocks(e *env) {
	q := e.open()
	kinds := map[string]func(queue.Consumer) error{
		"Consumer.Close": func(c queue.Consumer) error { return c.Close() },
		"Queue.Close":    func(queue.Consumer) error { return q.Close() },
	}
	for _, kind := range []string{"Consumer.Close", "Queue.Close"} {
		c := e.consumer(q)
		ch := receive(e.ctx, c, 1)
		select {
		case r := <-ch:
			e.Fatalf("Receive on an empty queue: got %d deliveries and %v, want it to block", len(r.ds), r.err)
		case <-time.After(50 * time.Millisecond): // the longer it blocks, the sharper the test
		}
		e.within(e.h.Arrival, kind, func() {
			if err := kinds[kind](c); err != nil {
				e.Errorf("%s: %v", kind, err)
			}
		})
		select {
		case r := <-ch:
			if !errors.Is(r.err, queue.ErrClosed) {
				e.Errorf("Receive that %s ended: got %v, want ErrClosed", kind, r.err)
			}
		case <-time.After(e.prompt):
			e.Errorf("Receive still blocks %v after %s", e.prompt, kind)
		}
	}
}

func useAfterClose(e *env) {
	q := e.open()
	c, p := e.both(q)
	c2, p2 := e.both(q)
	check := func(what string, err error) {
		e.Helper()
		if !errors.Is(err, queue.ErrClosed) {
			e.Errorf("%s: got %v, want ErrClosed", what, err)
		}
	}
	after := func(c queue.Consumer, p queue.Publisher) {
		e.Helper()
		ms := e.msgs(2, "")
		err := p.Publish(e.ctx, ms...)
		check("Publish after Close", err)
		for i := range ms {
			if got := queue.OutcomeOf(err, i); got != queue.Rejected {
				e.Errorf("message %d of a Publish after Close: got %v, want rejected", i, got)
			}
		}
		_, err = c.Receive(e.ctx, 1)
		check("Receive after Close", err)
	}
	for range 2 { // the second Close is a no-op
		e.close("consumer", c)
		e.close("publisher", p)
	}
	after(c, p)

	ms := e.msgs(1, "")
	e.publish(p2, ms...)
	e.collect(ms, c2)
	for range 2 {
		e.close("queue", q)
	}
	after(c2, p2)
	_, err := q.Publisher(e.ctx)
	check("Publisher after Queue.Close", err)
	_, err = q.Consumer(e.ctx)
	check("Consumer after Queue.Close", err)
	e.close("consumer", c2)
	e.close("publisher", p2)
}

func ackAfterClose(e *env) {
	q := e.open()
	c, p := e.both(q)
	ms := e.msgs(1, "k")
	e.publish(p, ms...)
	d := e.take(c, 1)[0]
	e.close("consumer", c)
	ctx, cancel := e.deadline(e.h.Arrival)
	defer cancel()
	if err := c.Ack(ctx, d); err == nil {
		e.Errorf("Ack after Close: got nil, want an error, since Close gave the message back")
	}
	e.collectAgain(ms, e.consumer(q))
}

func concurrentClose(e *env) {
	q := e.open()
	keep, p := e.both(q)
	var mu sync.Mutex
	var accepted []queue.Message
	t := newTally(nil)
	var wg sync.WaitGroup
	for range 3 {
		c, p := e.both(q)
		ms := e.msgs(10, "")
		wg.Go(func() {
			for _, m := range ms {
				if err := p.Publish(e.ctx, m); err == nil {
					mu.Lock()
					accepted = append(accepted, m)
					mu.Unlock()
				}
			}
		})
		wg.Go(func() {
			for {
				ds, err := c.Receive(e.ctx, 3)
				if err != nil {
					return
				}
				for _, d := range ds {
					if c.Ack(e.ctx, d) == nil {
						t.add([]*queue.Delivery{d})
					}
				}
			}
		})
		for range 2 {
			wg.Go(func() { e.close("consumer", c) })
			wg.Go(func() { e.close("publisher", p) })
		}
	}
	if !e.within(2*e.h.Arrival, "closing while publishing and receiving", wg.Wait) {
		return
	}
	if e.caps.Guarantee == queue.AtLeastOnce {
		var want []queue.Message
		for _, m := range accepted {
			if t.seen[m.ID] == 0 {
				want = append(want, m)
			}
		}
		left := newTally(want)
		left.others = true // an unknown publish, or an ack that met the Close
		ctx, cancel := e.deadline(e.h.Arrival + e.h.Redelivery)
		defer cancel()
		for !left.complete() {
			ds, err := keep.Receive(ctx, 10)
			if err != nil {
				break
			}
			left.add(ds)
			e.ack(keep, ds...)
		}
		left.report(e, e.h.Arrival+e.h.Redelivery)
	}
	e.drain(keep)
	ms := e.msgs(5, "")
	e.publish(p, ms...)
	e.collect(ms, keep)
}

func closeOne(e *env) {
	q := e.open()
	a, pa := e.both(q)
	b, pb := e.both(q)
	e.close("consumer", a)
	e.close("publisher", pa)
	ms := e.msgs(5, "k")
	e.publish(pb, ms...)
	e.collectAgain(ms, b)
	e.nothing(b, e.quiet)
}

func deleteQueue(e *env) {
	q := e.open()
	p := e.publisher(q)
	e.publish(p, e.msgs(5, "k")...)
	e.close("publisher", p)
	ctx, cancel := e.deadline(e.h.Arrival)
	defer cancel()
	for range 2 { // deleting what does not exist is not an error
		if err := q.Delete(ctx); err != nil {
			e.Fatalf("delete the queue: %v", err)
		}
	}
	again := q
	if e.caps.Shared {
		e.close("queue", q)
		again = e.open()
	}
	c, p := e.both(again)
	e.nothing(c, e.quiet)
	ms := e.msgs(5, "k")
	e.publish(p, ms...)
	e.collect(ms, c)
}
