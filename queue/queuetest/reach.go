package queuetest

import (
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/queue"
)

// reachCases are about consumers that get something else than all that is new:
// one key's messages, or those of the past.
func reachCases() []testCase {
	replay := func(c queue.Capabilities) bool { return c.Replay }
	routing := func(c queue.Capabilities) bool { return c.Routing }
	return []testCase{
		{name: "ABoundHandleGetsItsKeyOnly", when: routing, run: bound},
		{name: "BindingsAreRefused", when: not(routing), needs: openErr, run: noBinding},
		{name: "AReplayDeliversWhatWasAckedAndDisturbsNobody", when: replay, run: replayed},
	}
}

func bound(e *env) {
	params := []string{"bind=red"}
	if e.caps.Groups {
		params = append(params, "group=red")
	}
	all, red := e.open(), e.open(params...)
	both, one := e.consumer(all), e.consumer(red)
	p := e.publisher(all)
	reds, blues := e.msgs(10, "red"), e.msgs(10, "blue")
	for i := range reds {
		e.publish(p, blues[i], reds[i])
	}
	e.collect(append(blues, reds...), both)
	e.collect(reds, one)
	e.nothing(both, e.quiet)
	e.nothing(one, e.quiet)
}

func noBinding(e *env) {
	if err := e.h.OpenErr("bind=red"); err == nil {
		e.Errorf("open with bind=red: got nil, want an error, since Routing is not claimed")
	}
}

func (e *env) replay(q queue.Replayer, from queue.From) queue.Consumer {
	e.Helper()
	ctx, cancel := e.deadline(e.h.Arrival)
	defer cancel()
	c, err := q.Replay(ctx, from)
	if err != nil {
		e.Fatalf("replay from %+v: %v", from, err)
	}
	return c
}

// settledMessages publishes and acks messages of several keys.
func (e *env) settledMessages(c queue.Consumer, p queue.Publisher, n int) []queue.Message {
	e.Helper()
	var ms []queue.Message
	for i := range n {
		ms = append(ms, e.msgs(1, string(rune('a'+i%4)))...)
	}
	e.publish(p, ms...)
	e.collect(ms, c)
	return ms
}

// replayed is one case for all that a replay is, since consumers of some queues
// take their time to open.
func replayed(e *env) {
	q := e.open()
	replayer, ok := q.(queue.Replayer)
	if !ok {
		e.Fatalf("Replay is claimed, and the queue is no Replayer")
	}
	c, p := e.both(q)
	early := e.settledMessages(c, p, 40)
	// Brokers tell milliseconds apart, by their own clocks, which for brokers
	// elsewhere are not ours.
	time.Sleep(50 * time.Millisecond)
	between := time.Now().Add(-25 * time.Millisecond)
	late := e.settledMessages(c, p, 10)
	held := e.msgs(5, "k")
	e.publish(p, held...)
	ds := e.take(c, len(held)) // which a replay must not settle
	late = append(late, held...)

	all := e.replay(replayer, queue.From{})
	again := e.collect(append(early, late...), all)
	if diff := cmp.Diff(byKey(append(early, late...)), byKey(messages(again))); e.caps.OrderedPerKey && diff != "" {
		e.Errorf("keys are replayed in another order than published (-published +replayed):\n%s", diff)
	}
	if err := all.Ack(e.ctx, again[0]); !errors.Is(err, queue.ErrSettled) {
		e.Errorf("a second Ack of a replayed delivery: got %v, want ErrSettled", err)
	}
	if err := all.Nack(e.ctx, again[0]); !errors.Is(err, queue.ErrUnsupported) {
		e.Errorf("Nack of a replayed delivery: got %v, want ErrUnsupported", err)
	}
	some := e.replay(replayer, queue.From{Time: between})
	e.collect(late, some)
	e.nothing(some, e.quiet)
	end := e.replay(replayer, queue.From{Time: time.Now().Add(time.Hour)})
	e.nothing(end, e.quiet)

	after := e.settledMessages(c, p, 5) // the group goes on, and so do they
	for _, r := range []queue.Consumer{all, some, end} {
		e.collect(after, r)
	}
	e.nothing(c, e.quiet)
	e.ack(c, ds...)
	e.close("replay", all)
	if _, err := all.Receive(e.ctx, 1); !errors.Is(err, queue.ErrClosed) {
		e.Errorf("Receive of a closed replay: got %v, want ErrClosed", err)
	}
	for _, from := range []queue.From{{Offset: "nowhere"}, {Offset: "0", Time: time.Now()}} {
		if c, err := replayer.Replay(e.ctx, from); err == nil {
			c.Close()
			e.Errorf("replay from %+v: got nil, want an error", from)
		}
	}
}
