package queuetest

import (
	"context"
	"errors"
	"time"

	"queuelab/queue"
)

// skipCases are all that there is for a queue that skips what comes while no
// Receive waits: nearly every other case publishes first and receives then.
func skipCases() []testCase {
	cases := []testCase{
		{name: "AReceiveThatWaitsGetsWhatIsPublished", run: waitingReceive},
		{name: "WhatComesWhileNobodyReceivesIsSkipped", run: skipped},
		{name: "EveryConsumerThatWaitsGetsTheMessage", when: broadcast, run: everyWaiting},
		{name: "SettlingIsLocal", run: settlesLocally},
	}
	others := map[string]bool{
		"AMaxBelowOneIsAnError": true, "CapabilitiesDoNotContradictEachOther": true, "WrongParametersAreRefused": true,
		"CloseUnblocksReceive": true, "PublishWaitsForTheConfirmItClaims": true, "BindingsAreRefused": true,
	}
	for _, c := range everyCase() {
		if others[c.name] {
			cases = append(cases, c)
		}
	}
	return cases
}

// through publishes until the Receives that wait have each got something, and
// returns what they got. When a Receive has reached the broker nobody can tell.
func (e *env) through(p queue.Publisher, cs ...queue.Consumer) []*queue.Delivery {
	e.Helper()
	ctx, cancel := e.deadline(e.h.Arrival)
	defer cancel()
	var waiting []chan received
	for _, c := range cs {
		waiting = append(waiting, receive(ctx, c, 1))
	}
	var got []*queue.Delivery
	for _, ch := range waiting {
		for came := false; !came; {
			e.publish(p, e.msgs(1, "k")...)
			select {
			case r := <-ch:
				if r.err != nil {
					e.Fatalf("a Receive that waits while messages are published: %v", r.err)
				}
				got, came = append(got, r.ds...), true
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return got
}

func waitingReceive(e *env) {
	c, p := e.both(e.open())
	for range 5 {
		d := e.through(p, c)[0]
		if want := "body of " + d.ID; string(d.Body) != want || d.Key != "k" {
			e.Errorf("message %s: got key %q and body %q, want k and %q", d.ID, d.Key, d.Body, want)
		}
		e.ack(c, d)
	}
}

func skipped(e *env) {
	c, p := e.both(e.open())
	e.ack(c, e.through(p, c)...)
	ms := e.msgs(20, "k")
	missed := newTally(ms)
	e.publish(p, ms...)
	for range 3 {
		for _, d := range e.through(p, c) {
			if missed.want[d.ID] {
				e.Errorf("message %s was published while no Receive waited, and came: Skips is claimed", d.ID)
			}
			e.ack(c, d)
		}
	}
}

func everyWaiting(e *env) {
	q := e.open()
	a, p := e.both(q)
	b := e.consumer(q)
	e.through(p, a, b)
}

func settlesLocally(e *env) {
	c, p := e.both(e.open())
	d := e.through(p, c)[0]
	if err := c.Nack(e.ctx, d); !e.caps.Nack && (!errors.Is(err, queue.ErrUnsupported) || d.Settled()) {
		e.Errorf("Nack is not claimed: got %v, settled %v, want ErrUnsupported and unsettled", err, d.Settled())
	}
	e.ack(c, d)
	if err := c.Ack(e.ctx, d); !errors.Is(err, queue.ErrSettled) {
		e.Errorf("Ack of an acked delivery: got %v, want ErrSettled", err)
	}
	e.close("consumer", c)
	e.close("publisher", p)
	if err := p.Publish(e.ctx, e.msgs(1, "")...); !errors.Is(err, queue.ErrClosed) {
		e.Errorf("Publish after Close: got %v, want ErrClosed", err)
	}
	if _, err := c.Receive(e.ctx, 1); !errors.Is(err, queue.ErrClosed) {
		e.Errorf("Receive after Close: got %v, want ErrClosed", err)
	}
	ended, cancel := context.WithCancel(e.ctx)
	cancel()
	c = e.consumer(e.open())
	if _, err := c.Receive(ended, 1); err != context.Canceled {
		e.Errorf("Receive with an ended context: got %v, want context.Canceled as it is", err)
	}
}
