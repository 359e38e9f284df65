package queuetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"queuelab/queue"
)

// faultCases kill and stop the broker. They run alone.
func faultCases() []testCase {
	durable := func(c queue.Capabilities) bool { return c.Durable }
	return []testCase{
		{name: "AcceptedMessagesSurviveACrash", when: durable, needs: crash, run: crashKeepsBacklog},
		{name: "ACrashLosesWhatOnlyMemoryHeld", needs: crash, run: crashLosesBacklog,
			when: func(c queue.Capabilities) bool { return c.Stored && !c.Durable && c.Confirm == queue.ConfirmMemory }},
		{name: "SettledStaysSettledOverACrash", when: durable, needs: crash, run: crashInFlight},
		{name: "OpenHandlesWorkAgainAfterACrash", needs: crash, run: reconnect},
		{name: "ALateSettleAfterACrashIsErrLeaseLost", needs: crash, run: lostLease,
			when: func(c queue.Capabilities) bool { return c.Durable && c.LeaseFenced }},
		{name: "PublishWaitsForTheConfirmItClaims", needs: freeze, run: frozenPublish},
		{name: "AckWaitsForTheAnswerItClaims", needs: freeze, run: frozenAck},
	}
}

const crashBacklog = 100

// publishBacklog leaves accepted messages on the broker, with no consumer that
// could hide what the broker forgets.
func publishBacklog(e *env, q queue.Queue) []queue.Message {
	e.Helper()
	p := e.publisher(q)
	ms := e.msgs(crashBacklog, "k")
	for i := 0; i < len(ms); i += 10 {
		e.publish(p, ms[i:i+10]...)
	}
	return ms
}

func crashKeepsBacklog(e *env) {
	q := e.open()
	ms := publishBacklog(e, q)
	e.h.Crash(e)
	c := e.consumerAfterCrash(q)
	e.ackAfterCrash(c, ms)
	e.nothing(c, e.quiet)
}

func crashLosesBacklog(e *env) {
	q := e.open()
	publishBacklog(e, q)
	e.h.Crash(e)
	c := e.consumerAfterCrash(q)
	n := 0
	for {
		ds, done := e.poll(c)
		if done {
			break
		}
		n += len(ds)
		e.ack(c, ds...)
	}
	if n == crashBacklog {
		e.Errorf("Durable is not claimed, but all %d messages survived a crash", n)
	}
}

func crashInFlight(e *env) {
	q := e.open()
	c, p := e.both(q)
	ms := e.msgs(30, "k")
	e.publish(p, ms...)
	ds := e.take(c, 20)
	e.ack(c, ds[:10]...)
	acked, held := newTally(messages(ds[:10])), newTally(messages(ds[10:]))
	left := slices.DeleteFunc(ms, func(m queue.Message) bool { return acked.want[m.ID] })
	e.h.Crash(e)
	if err := c.Close(); err != nil {
		e.Logf("close of a consumer whose broker was killed: %v", err)
	}
	c = e.consumerAfterCrash(q)
	var again []*queue.Delivery
	if e.caps.Guarantee == queue.AtLeastOnce {
		again = e.ackAfterCrash(c, left)
	}
	for {
		late, done := e.poll(c)
		if done {
			break
		}
		e.ack(c, late...)
		again = append(again, late...)
	}
	for _, d := range again {
		switch {
		case acked.want[d.ID] && e.caps.AckConfirmed:
			e.Errorf("message %s came back after a crash, though its ack was confirmed", d.ID)
		case held.want[d.ID] && e.caps.Guarantee == queue.AtMostOnce:
			e.Errorf("message %s came back after a crash, though delivering removes it", d.ID)
		}
	}
}

// lostLease crashes the broker under a delivery that an open consumer holds,
// and settles it when another consumer has the message.
func lostLease(e *env) {
	q := e.open()
	c, p := e.both(q)
	e.publish(p, e.msgs(1, "k")...)
	old := e.take(c, 1)[0]
	e.h.Crash(e)
	other := e.consumerAfterCrash(q)
	ctx, cancel := e.deadline(2*e.h.Arrival + e.h.Redelivery)
	defer cancel()
	var ds []*queue.Delivery
	for len(ds) == 0 {
		var err error
		if ds, err = other.Receive(ctx, 1); err != nil && ctx.Err() != nil {
			e.Skipf("the message did not come to another consumer while its first one is open: %v", err)
		}
	}
	late, cancel := e.deadline(2 * e.h.Arrival)
	defer cancel()
	if err := c.Ack(late, old); !errors.Is(err, queue.ErrLeaseLost) {
		e.Errorf("ack of a delivery from before the crash, which another consumer has now: got %v, want ErrLeaseLost", err)
	}
	e.ack(other, ds...)
}

// consumerAfterCrash opens a consumer, and allows the handle some errors
// while its connection is being replaced.
func (e *env) consumerAfterCrash(q queue.Queue) queue.Consumer {
	e.Helper()
	ctx, cancel := e.deadline(4*e.h.Arrival + e.h.Redelivery)
	defer cancel()
	for {
		c, err := q.Consumer(ctx)
		if err == nil {
			return c
		}
		select {
		case <-ctx.Done():
			e.Fatalf("open a consumer after the crash: %v", err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// ackAfterCrash receives until all of ms have come, each once. It acks them as they
// come: what it held while it waits for the lease of the dead may run out as well.
func (e *env) ackAfterCrash(c queue.Consumer, ms []queue.Message) []*queue.Delivery {
	e.Helper()
	limit := 4*e.h.Arrival + e.h.Redelivery
	ctx, cancel := e.deadline(limit)
	defer cancel()
	t := newTally(ms)
	t.others = true
	var last error
	for !t.complete() && ctx.Err() == nil {
		ds, err := c.Receive(ctx, 64)
		if err != nil {
			last = err
		}
		t.add(ds)
		if len(ds) > 0 {
			e.ack(c, ds...)
		}
	}
	if last != nil {
		e.Logf("last error of Receive: %v", last)
	}
	t.report(e, limit)
	return t.all
}

// reconnect keeps a publisher and a consumer open over a crash. Each try is a
// new message, since not every queue keeps what nobody heard.
func reconnect(e *env) {
	const perSecond, burst = 10, 10
	q := e.open()
	c, p := e.both(q)
	ms := e.msgs(1, "k")
	e.publish(p, ms...)
	e.collect(ms, c)

	ctx, cancel := e.deadline(6*e.h.Arrival + e.h.Redelivery)
	defer cancel()
	arrived := make(chan string, 10_000)
	done := make(chan struct{})
	errs, start := 0, time.Now()
	var lastReceive error
	go func() {
		defer close(done)
		for {
			ds, err := c.Receive(ctx, 10)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				errs++
				lastReceive = err
			}
			for _, d := range ds {
				c.Ack(ctx, d)
				arrived <- d.ID
			}
		}
	}()
	e.h.Crash(e)
	fresh := make(map[string]bool)
	accepted, through := false, false
	var last error
	for ctx.Err() == nil && !(accepted && through) {
		m := e.msgs(1, "k")[0]
		fresh[m.ID] = true
		try, stop := context.WithTimeout(ctx, e.h.Arrival)
		if err := p.Publish(try, m); err == nil {
			accepted = true
		} else {
			last = err
		}
		stop()
		pause := time.After(100 * time.Millisecond)
	wait:
		for !through {
			select {
			case id := <-arrived:
				through = fresh[id]
			case <-pause:
				break wait
			}
		}
	}
	took := time.Since(start)
	cancel()
	<-done
	if !accepted {
		e.Errorf("an open publisher does not work again within %v of a crash; its last error is %v", took, last)
	}
	if !through {
		e.Errorf("an open consumer gets nothing within %v of a crash; its last error is %v", took, lastReceive)
	}
	if allowed := burst + perSecond*took.Seconds(); float64(errs) > allowed {
		e.Errorf("Receive spins while the broker is away: %d errors in %v, want at most %d a second; the last is %v", errs, took, perSecond, lastReceive)
	}
}

func frozenPublish(e *env) {
	p := e.publisher(e.open())
	e.publish(p, e.msgs(1, "k")...) // the connection is open
	thaw := e.freezeOnce()
	defer thaw()
	ctx, cancel := e.deadline(e.prompt)
	defer cancel()
	var err error
	if !e.within(e.prompt+e.h.Arrival, "Publish to a frozen broker, whose context has ended,", func() {
		err = p.Publish(ctx, e.msgs(1, "k")...)
	}) {
		return
	}
	switch outcome := queue.OutcomeOf(err, 0); {
	case outcome == queue.Accepted && e.caps.Confirm != queue.ConfirmNone:
		e.Errorf("a frozen broker confirmed nothing, but Publish returned nil; Confirm is %v", e.caps.Confirm)
	case outcome == queue.Rejected:
		e.Errorf("publish to a frozen broker: got %v, which says rejected, want unknown: the broker may still take the message", err)
	}
}

func frozenAck(e *env) {
	q := e.open()
	c, p := e.both(q)
	e.publish(p, e.msgs(1, "k")...)
	d := e.take(c, 1)[0]
	thaw := e.freezeOnce()
	defer thaw()
	ctx, cancel := e.deadline(e.prompt)
	defer cancel()
	var err error
	if !e.within(e.prompt+e.h.Arrival, "Ack to a frozen broker, whose context has ended,", func() { err = c.Ack(ctx, d) }) {
		return
	}
	if e.caps.AckConfirmed == (err == nil) {
		e.Errorf("ack to a frozen broker: got %v; AckConfirmed is %v", err, e.caps.AckConfirmed)
	}
	if err == nil {
		return
	}
	thaw()
	again, cancel := e.deadline(e.h.Arrival)
	defer cancel()
	// The first try may have got through after all.
	if err := c.Ack(again, d); err != nil && !errors.Is(err, queue.ErrLeaseLost) && !errors.Is(err, queue.ErrSettled) {
		e.Errorf("ack once the broker goes on: %v", err)
	}
}

// freezeOnce makes the thaw safe to call twice.
func (e *env) freezeOnce() func() {
	return sync.OnceFunc(e.h.Freeze(e))
}
