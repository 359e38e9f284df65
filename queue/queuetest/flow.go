package queuetest

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"queuelab/queue"
)

// flowCases are about messages on their way: none lost, none twice, none
// changed, none out of order.
func flowCases() []testCase {
	return []testCase{
		{name: "EveryMessageArrivesExactlyOnce", run: arrivesOnce},
		{name: "MessagesArriveUnchanged", run: unchanged},
		{name: "ALargeBodyArrivesOrIsRejected", run: largeBody},
		{name: "ConcurrentPublishersLoseNothing", run: concurrentPublishers},
		{name: "ReceiveReturnsAtMostMax", run: receiveMax},
		{name: "AMaxBelowOneIsAnError", run: noMax},
		{name: "OneKeyKeepsItsOrder", when: func(c queue.Capabilities) bool { return c.OrderedPerKey }, run: keyOrder},
		{name: "AConsumerSeesWhatIsPublishedAfterItOpened", run: consumerReady},
		{name: "ACancelledReceiveSwallowsNothing", run: cancelledReceive},
		{name: "WhatComesAfterACancelledReceiveSurvivesClose", when: stored, run: cancelledThenClosed},
		{name: "AnEndedContextIsReturnedAsItIs", run: endedContext},
		{name: "QueuesDoNotMix", run: queuesDoNotMix},
	}
}

func stored(c queue.Capabilities) bool      { return c.Stored }
func atLeastOnce(c queue.Capabilities) bool { return c.Guarantee == queue.AtLeastOnce }

// arrivesOnce moves enough messages that one lost or doubled in a thousand is
// seen several times over. Small rounds keep a bounded queue from filling up.
func arrivesOnce(e *env) {
	const rounds, size, atLeast = 32, 100, 12
	c, p := e.both(e.open())
	start := time.Now()
	for round := range rounds {
		if round >= atLeast && time.Since(start) > 2*e.h.Arrival {
			e.Logf("%d messages instead of %d: the broker is slow", round*size, rounds*size)
			break
		}
		ms := e.msgs(size, "")
		e.publish(p, ms[:1]...)
		e.publish(p, ms[1:10]...)
		e.publish(p, ms[10:]...)
		e.collect(ms, c)
	}
	e.nothing(c, e.quiet)
}

func unchanged(e *env) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	ms := []queue.Message{
		{ID: "plain", Body: []byte("body")},
		{ID: "keyed", Key: "user:42", Body: []byte("body")},
		{ID: "every byte", Key: "k", Body: every},
		{ID: "empty body", Key: "k"},
		{ID: "headers", Key: "k", Body: []byte("b"), Headers: map[string]string{
			"trace": "00-abc-01", "empty": "", "UPPER lower": "a b", "中文": "秒杀 ✓", "newline": "a\r\nb",
			// Names that a backend may use for fields of its own.
			"id": "1", "key": "2", "body": "3", "attempt": "4", "ID": "5",
		}},
		{ID: "秒杀/1?x=%20 ✓", Key: "ключ", Body: []byte{0}},
		{ID: "looks like a format", Body: []byte(`{"id":"x","body":null}`), Headers: map[string]string{"h": "{}"}},
	}
	c, p := e.both(e.open())
	e.publish(p, ms...)
	got := make(map[string]queue.Message)
	for _, d := range e.take(c, len(ms)) {
		if d.Attempt > 1 {
			e.Errorf("message %q: got attempt %d at its first delivery, want at most 1", d.ID, d.Attempt)
		}
		got[d.ID] = d.Message
		e.ack(c, d)
	}
	for _, want := range ms {
		if diff := cmp.Diff(want, got[want.ID], cmpopts.EquateEmpty()); diff != "" {
			e.Errorf("message %q changed on its way (-published +delivered):\n%s", want.ID, diff)
		}
	}
}

func largeBody(e *env) {
	c, p := e.both(e.open())
	big := e.msgs(1, "")[0]
	big.Body = bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	ctx, cancel := e.deadline(e.h.Arrival)
	defer cancel()
	want := []queue.Message{big}
	if err := p.Publish(ctx, big); errors.Is(err, queue.ErrRejected) {
		e.Logf("1 MiB is rejected: %v", err)
		want = nil
	} else if err != nil {
		e.Fatalf("publish 1 MiB: got %v, want nil or ErrRejected", err)
	}
	small := e.msgs(1, "")
	e.publish(p, small...) // also after a rejected one
	for _, d := range e.collect(append(want, small...), c) {
		if d.ID == big.ID && !bytes.Equal(d.Body, big.Body) {
			e.Errorf("the body of 1 MiB changed on its way: got %d bytes", len(d.Body))
		}
	}
}

func concurrentPublishers(e *env) {
	const publishers, calls, size = 8, 5, 3
	c, p := e.both(e.open())
	var all []queue.Message
	var wg sync.WaitGroup
	for range publishers {
		ms := e.msgs(calls*size, "")
		all = append(all, ms...)
		wg.Go(func() {
			ctx, cancel := e.deadline(e.h.Arrival)
			defer cancel()
			for i := 0; i < len(ms); i += size {
				if err := p.Publish(ctx, ms[i:i+size]...); err != nil {
					e.Errorf("concurrent publish: %v", err)
				}
			}
		})
	}
	wg.Wait()
	e.collect(all, c)
	e.nothing(c, e.quiet)
}

func noMax(e *env) {
	c, p := e.both(e.open())
	e.publish(p, e.msgs(1, "")...)
	for _, max := range []int{0, -1} {
		ctx, cancel := e.deadline(e.prompt)
		if ds, err := c.Receive(ctx, max); err == nil || ctx.Err() != nil {
			e.Errorf("Receive with a max of %d: got %d deliveries and %v, want an error at once", max, len(ds), err)
		}
		cancel()
	}
}

func receiveMax(e *env) {
	c, p := e.both(e.open())
	ms := e.msgs(30, "")
	e.publish(p, ms...)
	t := newTally(ms)
	ctx, cancel := e.deadline(e.h.Arrival)
	defer cancel()
	for i := 0; !t.complete(); i++ {
		max := 1 + i%4
		ds, err := c.Receive(ctx, max)
		if err != nil {
			e.Errorf("receive: %v", err)
			break
		}
		if len(ds) < 1 || len(ds) > max {
			e.Fatalf("Receive with max %d: got %d deliveries", max, len(ds))
		}
		t.add(ds)
		e.ack(c, ds...)
	}
	t.report(e, e.h.Arrival)
}

func keyOrder(e *env) {
	c, p := e.both(e.open())
	keys := []string{"a", "b", "c", "d"}
	for range 2 {
		var ms []queue.Message
		for i := range 100 {
			ms = append(ms, e.msgs(1, keys[i%len(keys)])...)
		}
		for i := 0; i < len(ms); i += 7 {
			e.publish(p, ms[i:min(i+7, len(ms))]...)
		}
		want, got := byKey(ms), byKey(messages(e.collect(ms, c)))
		for _, k := range keys {
			if diff := cmp.Diff(want[k], got[k]); diff != "" {
				e.Errorf("key %q came in another order than published (-published +delivered):\n%s", k, diff)
			}
		}
	}
}

func messages(ds []*queue.Delivery) []queue.Message {
	ms := make([]queue.Message, len(ds))
	for i, d := range ds {
		ms[i] = d.Message
	}
	return ms
}

func byKey(ms []queue.Message) map[string][]string {
	m := make(map[string][]string)
	for _, x := range ms {
		m[x.Key] = append(m[x.Key], x.ID)
	}
	return m
}

func consumerReady(e *env) {
	q := e.open()
	p := e.publisher(q)
	for range 5 {
		c := e.consumer(q)
		ms := e.msgs(1, "")
		e.publish(p, ms...)
		e.collect(ms, c)
		e.close("consumer", c)
	}
}

func cancelledReceive(e *env) {
	c, p := e.both(e.open())
	for range 3 {
		ctx, cancel := context.WithCancel(e.ctx)
		ch := receive(ctx, c, 10)
		select {
		case r := <-ch:
			e.Fatalf("Receive on an empty queue: got %d deliveries and %v, want it to block", len(r.ds), r.err)
		case <-time.After(50 * time.Millisecond): // the longer it blocks, the sharper the test
		}
		cancel()
		select {
		case r := <-ch:
			if r.err != context.Canceled || len(r.ds) > 0 {
				e.Fatalf("cancelled Receive: got %d deliveries and error %v, want context.Canceled as it is", len(r.ds), r.err)
			}
		case <-time.After(e.prompt):
			e.Fatalf("a cancelled Receive still blocks after %v", e.prompt)
		}
		ms := e.msgs(1, "")
		e.publish(p, ms...)
		e.collect(ms, c)
	}
	// Now the message and the cancellation meet, in either order.
	ms := e.msgs(30, "")
	t := newTally(ms)
	for i, m := range ms {
		ctx, cancel := context.WithCancel(e.ctx)
		ch := receive(ctx, c, 10)
		stop := time.AfterFunc(time.Duration(i)*50*time.Microsecond, cancel)
		e.publish(p, m)
		select {
		case r := <-ch:
			t.add(r.ds)
			if len(r.ds) > 0 {
				e.ack(c, r.ds...)
			} else if r.err != context.Canceled {
				e.Fatalf("cancelled Receive: got error %v, want context.Canceled as it is", r.err)
			}
		case <-time.After(e.h.Arrival):
			e.Fatalf("a cancelled Receive still blocks after %v", e.h.Arrival)
		}
		stop.Stop()
		cancel()
	}
	var left []queue.Message
	for _, m := range ms {
		if t.seen[m.ID] == 0 {
			left = append(left, m)
		}
	}
	if len(left) > 0 {
		t.add(e.collect(left, c))
	}
	t.report(e, e.h.Arrival)
	e.nothing(c, e.quiet)
}

func cancelledThenClosed(e *env) {
	q := e.open()
	p := e.publisher(q)
	for range 2 {
		c := e.consumer(q)
		ctx, cancel := e.deadline(50 * time.Millisecond)
		r := <-receive(ctx, c, 10)
		cancel()
		if r.err != context.DeadlineExceeded {
			e.Fatalf("Receive without messages: got error %v, want context.DeadlineExceeded as it is", r.err)
		}
		ms := e.msgs(3, "")
		e.publish(p, ms...)
		e.close("consumer", c)
		next := e.consumer(q)
		e.collectAgain(ms, next)
		e.close("consumer", next)
	}
}

func endedContext(e *env) {
	c, p := e.both(e.open())
	ended, cancel := context.WithCancel(e.ctx)
	cancel()
	if err := p.Publish(ended, e.msgs(2, "")...); err != context.Canceled {
		e.Errorf("Publish with an ended context: got %v, want context.Canceled as it is", err)
	}
	e.nothing(c, e.quiet)
	ms := e.msgs(2, "")
	e.publish(p, ms...)
	if ds, err := c.Receive(ended, 10); err != context.Canceled || len(ds) > 0 {
		e.Errorf("Receive with an ended context: got %d deliveries and %v, want context.Canceled as it is", len(ds), err)
	}
	e.collect(ms, c)
}

func queuesDoNotMix(e *env) {
	ca, pa := e.both(e.open())
	cb, pb := e.both(e.openNamed(e.name + "-b"))
	a, b := e.msgs(10, "k"), e.msgs(10, "k")
	e.publish(pa, a...)
	e.publish(pb, b...)
	e.collect(a, ca)
	e.collect(b, cb)
	e.nothing(ca, e.quiet)
	e.nothing(cb, e.quiet)
}
