package queuetest

import (
	"bytes"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"queuelab/queue"
)

// scriptCases are about messages that somebody else's script puts into the queue.
func scriptCases() []testCase {
	return []testCase{
		{name: "WhatAScriptEnqueuesIsDeliveredLikeWhatIsPublished", run: enqueuedByScript},
	}
}

// byScript is how a script reaches the queue.
func (e *env) byScript(q queue.Queue) *queue.ScriptEnqueue {
	e.Helper()
	s, can := q.(queue.ScriptEnqueuer)
	if !can {
		e.Skip("the queue is no ScriptEnqueuer")
	}
	ctx, cancel := e.deadline(e.h.Arrival)
	defer cancel()
	how, err := s.ScriptEnqueue(ctx)
	if err != nil {
		e.Fatalf("ask how a script enqueues: %v", err)
	}
	if how == nil {
		e.Skip("with these settings a script cannot enqueue")
	}
	if e.h.Script == nil {
		e.Fatal("the queue is a ScriptEnqueuer, and the harness has no Script to see whether that is true")
	}
	if how.Server == "" || how.Key == "" || how.Command == "" || how.Args == nil {
		e.Fatalf("got %+v, want a server, a key, a command and its arguments", how)
	}
	return how
}

func enqueuedByScript(e *env) {
	q := e.open()
	how := e.byScript(q)
	c, p := e.both(q)
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	body := bytes.Clone(every)
	ms := []queue.Message{
		{ID: "published first", Key: "k", Body: []byte("b")},
		{ID: "plain", Key: "k", Body: []byte("body")},
		{ID: "every byte", Key: "k", Body: body, Headers: map[string]string{"trace": "00-abc-01", "id": "1", "空": ""}},
		{ID: "no key and no body"},
		{ID: "published last", Key: "k", Body: []byte("b")},
	}
	for _, m := range ms {
		if m.ID == "published first" || m.ID == "published last" {
			e.publish(p, m)
			continue
		}
		args := how.Args(m)
		clear(m.Body) // it is the caller's again
		if err := e.h.Script(e.TB, *how, args...); err != nil {
			e.Fatalf("enqueue %q in a script: %v", m.ID, err)
		}
	}
	ms[1].Body, ms[2].Body = []byte("body"), every
	ds := e.take(c, len(ms))
	got := make([]queue.Message, len(ds))
	for i, d := range ds {
		got[i] = d.Message
		if d.Attempt > 1 {
			e.Errorf("message %q: got attempt %d, want the first", d.ID, d.Attempt)
		}
	}
	order := cmpopts.SortSlices(func(a, b queue.Message) bool { return a.ID < b.ID })
	if e.caps.OrderedPerKey {
		order = cmp.Options{}
	}
	if diff := cmp.Diff(ms, got, cmpopts.EquateEmpty(), order); diff != "" {
		e.Errorf("messages (-put there +delivered):\n%s", diff)
	}
	e.ack(c, ds...)
	e.nothing(c, e.quiet)
}
