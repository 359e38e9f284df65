package queuetest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/queue"
)

// claimCases test what the capabilities say about one handle: each claim, and
// the absence of what is not claimed.
func claimCases() []testCase {
	return []testCase{
		{name: "CapabilitiesDoNotContradictEachOther", run: consistent},
		{name: "StoredMessagesWaitForAConsumer", when: stored, run: waitsForConsumer},
		{name: "UnstoredMessagesAreGoneWithoutAConsumer", when: not(stored), run: goneWithoutConsumer},
		{name: "AFullQueueBlocksOrRejects", when: bounded, run: fullQueue},
		{name: "AFullQueueDropsItsOldest", when: dropsOldest, run: fullQueueDrops},
		{name: "AnUnboundedQueueGrows", when: func(c queue.Capabilities) bool { return c.Stored && !c.Bounded && !c.DropsOldest }, run: growingQueue},
		{name: "AttemptsAreCountedAsClaimed", run: attempts},
		{name: "ALateSettleIsErrLeaseLostWhereClaimed", when: atLeastOnce, run: lateSettle},
		{name: "BacklogCountsWhatIsThere", when: stored, run: backlog},
		{name: "WrongParametersAreRefused", needs: openErr, run: wrongParameters},
	}
}

func bounded(c queue.Capabilities) bool     { return c.Bounded }
func dropsOldest(c queue.Capabilities) bool { return c.DropsOldest }

func not(f func(queue.Capabilities) bool) func(queue.Capabilities) bool {
	return func(c queue.Capabilities) bool { return !f(c) }
}

func consistent(e *env) {
	q := e.open()
	caps := q.Capabilities()
	if again := q.Capabilities(); again != caps {
		e.Errorf("Capabilities are not constant: got %+v, then %+v", caps, again)
	}
	if _, can := q.(queue.Replayer); can != caps.Replay {
		e.Errorf("Replay is %v, though the queue being a Replayer is %v", caps.Replay, can)
	}
	c := caps
	for _, rule := range []struct {
		broken bool
		why    string
	}{
		{c.Durable && !c.Stored, "Durable without Stored: what survives a crash must have been kept"},
		{c.Durable && c.Confirm < queue.ConfirmOS, "Durable, though what was accepted may not have left the broker's memory, or the client"},
		{!c.Durable && (c.Confirm == queue.ConfirmOS || c.Confirm == queue.ConfirmDisk), "a Confirm that survives a killed broker without Durable"},
		{c.Guarantee == queue.AtMostOnce && c.AckConfirmed, "AckConfirmed at most once: there is no ack that a broker could answer"},
		{c.Guarantee == queue.AtMostOnce && c.LeaseFenced, "LeaseFenced at most once: there is no lease"},
		{c.DropsOldest && (c.Bounded || !c.Stored), "DropsOldest beside Bounded, or without Stored: a full queue does one or the other"},
		{c.Skips && (c.Stored || c.Guarantee == queue.AtLeastOnce), "Skips though Stored, or at least once: what is skipped is never delivered"},
		{c.MayStrand && !c.Stored, "MayStrand without Stored: what lies in a queue is stored"},
		{c.Groups && c.Broadcast, "Groups and Broadcast: within a group consumers compete"},
		{c.Groups && !c.Shared, "Groups without Shared: a group is another handle on the same queue"},
	} {
		if rule.broken {
			e.Errorf("%+v: %s", c, rule.why)
		}
	}
}

func waitsForConsumer(e *env) {
	q := e.open()
	ms := e.msgs(20, "k")
	e.publish(e.publisher(q), ms...)
	c := e.consumer(q)
	e.collect(ms, c)
	e.nothing(c, e.quiet)
}

func goneWithoutConsumer(e *env) {
	q := e.open()
	p := e.publisher(q)
	e.publish(p, e.msgs(20, "k")...) // nil, since nobody promises more
	c := e.consumer(q)
	e.nothing(c, e.quiet)
	ms := e.msgs(1, "k")
	e.publish(p, ms...)
	e.collect(ms, c)
}

func fullQueue(e *env) {
	const limit = 20000
	q := e.open()
	p := e.publisher(q)
	var accepted, rejected []queue.Message
	unknown := make(map[string]bool)
	var full error
	for len(accepted) < limit && full == nil {
		ms := e.msgs(100, "")
		ctx, cancel := e.deadline(e.prompt) // a full queue may block
		full = p.Publish(ctx, ms...)
		cancel()
		var pe *queue.PublishError
		if errors.As(full, &pe) && len(pe.Outcomes) != len(ms) {
			e.Fatalf("%v: got %d outcomes for %d messages", full, len(pe.Outcomes), len(ms))
		}
		for i, m := range ms {
			switch queue.OutcomeOf(full, i) {
			case queue.Accepted:
				accepted = append(accepted, m)
			case queue.Rejected:
				rejected = append(rejected, m)
			default:
				unknown[m.ID] = true
			}
		}
	}
	if full == nil {
		e.Errorf("Bounded is claimed, but %d messages were accepted without a consumer", len(accepted))
	}
	c := e.consumer(q)
	t := newTally(accepted)
	t.others = true
	ctx, cancel := e.deadline(4 * e.h.Arrival)
	defer cancel()
	for !t.complete() {
		ds, err := c.Receive(ctx, 100)
		if err != nil {
			break
		}
		t.add(ds)
		e.ack(c, ds...)
	}
	for {
		ds, done := e.poll(c)
		if done {
			break
		}
		t.add(ds)
		e.ack(c, ds...)
	}
	t.report(e, 4*e.h.Arrival)
	for _, m := range rejected {
		if t.seen[m.ID] > 0 {
			e.Errorf("message %s was delivered though it was rejected", m.ID)
		}
	}
	ms := e.msgs(10, "")
	e.publish(p, ms...) // there is room again
	e.collect(ms, c)
}

// fullQueueDrops publishes more than the queue holds. All is accepted, and what
// is left is the newest, without a gap.
func fullQueueDrops(e *env) {
	q := e.open()
	p := e.publisher(q)
	var all []queue.Message
	for range 20 {
		ms := e.msgs(100, "k")
		e.publish(p, ms...)
		all = append(all, ms...)
	}
	c := e.consumer(q)
	var got []string
	for {
		ds, done := e.poll(c)
		if done {
			break
		}
		e.ack(c, ds...)
		for _, d := range ds {
			got = append(got, d.ID)
		}
	}
	if n := len(got); n < 128 || n >= len(all) {
		e.Fatalf("%d of %d messages are left in a queue that drops, want fewer, and at least 128", n, len(all))
	}
	want := byKey(all[len(all)-len(got):])["k"]
	if diff := cmp.Diff(want, got); diff != "" {
		e.Errorf("what is left is not the newest, in order (-want +got):\n%s", diff)
	}
	ms := e.msgs(10, "")
	e.publish(p, ms...)
	e.collect(ms, c)
}

// growingQueue takes more than the default bound of any queue here that has one.
func growingQueue(e *env) {
	q := e.open()
	p := e.publisher(q)
	var all []queue.Message
	for range 20 {
		ms := e.msgs(100, "")
		e.publish(p, ms...)
		all = append(all, ms...)
	}
	c := e.consumer(q)
	e.collectWithin(4*e.h.Arrival, all, c)
}

// attempts looks at three deliveries of one message: the second after a nack
// where the queue can, every other after its consumer was closed.
func attempts(e *env) {
	q := e.open()
	c, p := e.both(q)
	ms := e.msgs(1, "k")
	e.publish(p, ms...)
	d := e.take(c, 1)[0]
	got := []int{d.Attempt}
	if e.caps.Guarantee == queue.AtLeastOnce {
		if e.caps.Nack {
			if err := c.Nack(e.ctx, d); err != nil {
				e.Fatalf("nack: %v", err)
			}
		}
		for len(got) < 3 {
			if !e.caps.Nack || len(got) > 1 {
				e.close("consumer", c)
				c = e.consumer(q)
			}
			d = e.takeAgain(c, 1)[0]
			got = append(got, d.Attempt)
		}
	}
	e.ack(c, d)
	want := map[queue.AttemptCounter][]int{
		queue.NotCounted:      {0, 0, 0},
		queue.CountedByBroker: {1, 2, 3},
		queue.FlaggedByBroker: {1, 2, 2},
	}[e.caps.Attempts][:len(got)]
	if diff := cmp.Diff(want, got); diff != "" {
		e.Errorf("attempts are claimed to be %v (-want +got):\n%s", e.caps.Attempts, diff)
	}
}

// lateSettle holds a delivery until another consumer has it, where the queue
// takes deliveries away from consumers that are alive.
func lateSettle(e *env) {
	q := e.open()
	slow, p := e.both(q)
	ms := e.msgs(1, "k")
	e.publish(p, ms...)
	d := e.take(slow, 1)[0]
	other := e.consumer(q)
	ctx, cancel := e.deadline(e.h.Redelivery + e.prompt)
	defer cancel()
	taken, err := other.Receive(ctx, 1)
	if err != nil {
		e.ack(slow, d)
		e.nothing(other, e.quiet)
		if e.caps.LeaseFenced {
			e.Logf("a consumer that is alive keeps its delivery: only a crash can tell whether a late settle is fenced")
		}
		return
	}
	err = slow.Ack(e.ctx, d)
	if got := errors.Is(err, queue.ErrLeaseLost); got != e.caps.LeaseFenced {
		e.Errorf("ack of a delivery that another consumer has: got %v; LeaseFenced is %v", err, e.caps.LeaseFenced)
	}
	if e.caps.LeaseFenced {
		e.ack(other, taken...)
	} else if err := other.Ack(e.ctx, taken...); err != nil {
		e.Logf("ack by the other consumer, after an unfenced ack: %v", err)
	}
	e.nothing(other, e.h.Redelivery+e.quiet)
}

func backlog(e *env) {
	q := e.open()
	b, ok := q.(queue.Backlogger)
	if !ok {
		e.Skip("the queue is no Backlogger")
	}
	var last queue.Backlog
	eventually := func(what string, holds func(queue.Backlog) bool) {
		e.Helper()
		for deadline := time.Now().Add(e.h.Arrival); ; {
			var err error
			if last, err = b.Backlog(e.ctx); err != nil {
				e.Fatalf("backlog: %v", err)
			}
			if holds(last) {
				return
			}
			if time.Now().After(deadline) {
				e.Fatalf("%s: got backlog %+v, not as it should be within %v", what, last, e.h.Arrival)
			}
			time.Sleep(10 * time.Millisecond) // the counts may lag
		}
	}
	none := func(n int64) bool { return n == 0 || n == -1 }
	eventually("an empty queue", func(b queue.Backlog) bool { return none(b.Ready) && none(b.InFlight) && none(b.Dead) })
	ms := e.msgs(10, "k")
	e.publish(e.publisher(q), ms...)
	eventually("10 messages and no consumer", func(b queue.Backlog) bool {
		return (b.Ready == 10 || b.Ready == -1) && none(b.InFlight)
	})
	c := e.consumer(q)
	ds := e.take(c, 4)
	eventually("4 of 10 messages with a consumer", func(b queue.Backlog) bool {
		switch {
		case e.caps.Guarantee == queue.AtMostOnce:
			// A position that is written now and then lags behind what was delivered.
			return (b.Ready <= 6 || e.caps.Groups && b.InFlight == -1 && b.Ready <= 10) && none(b.InFlight)
		case b.InFlight == -1: // then what is in flight counts as ready, or not at all; a prefetch is in flight too
			return b.Ready <= 10
		case b.Ready == -1:
			return b.InFlight >= 4 && b.InFlight <= 10
		}
		return b.InFlight >= 4 && b.Ready+b.InFlight == 10 // a prefetch is in flight too
	})
	e.ack(c, ds...)
	e.collect(ms[4:], c)
	eventually("everything acked", func(b queue.Backlog) bool { return none(b.Ready) && none(b.InFlight) && none(b.Dead) })
}

func wrongParameters(e *env) {
	if err := e.h.OpenErr("nosuchparameter=1"); err == nil {
		e.Errorf("open with an unknown parameter: got nil, want an error")
	} else {
		e.mentions(err, "nosuchparameter", "known")
	}
	if err := e.h.OpenErr("preset=nosuchpreset"); err == nil {
		e.Errorf("open with an unknown preset: got nil, want an error")
	} else {
		e.mentions(err, "nosuchpreset", "latency", "throughput")
	}
	for _, preset := range []string{"latency", "throughput"} {
		if err := e.h.OpenErr("preset=" + preset); err != nil {
			e.Errorf("open with preset %s: %v", preset, err)
		}
	}
}

func (e *env) mentions(err error, words ...string) {
	e.Helper()
	missing := slices.DeleteFunc(words, func(w string) bool { return strings.Contains(err.Error(), w) })
	if len(missing) > 0 {
		e.Errorf("the error does not mention %s: %v", strings.Join(missing, ", "), err)
	}
}
