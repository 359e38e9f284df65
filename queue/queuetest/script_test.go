package queuetest_test

import (
	"context"
	"errors"
	"testing"

	"queuelab/queue"
	"queuelab/queue/queuetest"
)

// scripted is the memory queue with a server that runs scripts, which is the
// queue itself. spoil changes what a script enqueues.
type scripted struct {
	queue.Queue
	spoil func(*queue.Message)
}

// ScriptEnqueue implements queue.ScriptEnqueuer.
func (q *scripted) ScriptEnqueue(context.Context) (*queue.ScriptEnqueue, error) {
	return &queue.ScriptEnqueue{Server: "memory/0", Key: "key", Command: "publish", Args: func(m queue.Message) []any {
		body := append([]byte(nil), m.Body...)
		m.Body = body
		q.spoil(&m)
		return []any{q, m}
	}}, nil
}

func scriptedHarness(spoil func(*queue.Message)) queuetest.Harness {
	h := tamper(func() *tampered { return &tampered{} })
	open := h.Open
	h.Open = func(t testing.TB, name string, params ...string) queue.Queue {
		return &scripted{open(t, name, params...), spoil}
	}
	h.Script = func(_ testing.TB, how queue.ScriptEnqueue, args ...any) error {
		q, ok1 := args[0].(*scripted)
		m, ok2 := args[1].(queue.Message)
		if !ok1 || !ok2 || how.Command != "publish" {
			return errors.New("no such command")
		}
		p, err := q.Publisher(context.Background())
		if err != nil {
			return err
		}
		defer p.Close()
		if m.ID == "" {
			return nil
		}
		return p.Publish(context.Background(), m)
	}
	return h
}

// brokenScripts are queues whose scripts enqueue something else.
func brokenScripts() []mutant {
	const caught = "WhatAScriptEnqueuesIsDeliveredLikeWhatIsPublished"
	m := func(name, says string, spoil func(*queue.Message)) mutant {
		return mutant{name, func() queuetest.Harness { return scriptedHarness(spoil) }, caught, says}
	}
	return []mutant{
		m("a script's message loses its key", "Key", func(m *queue.Message) { m.Key = "" }),
		m("a script's message loses its headers", "Headers", func(m *queue.Message) { m.Headers = nil }),
		m("a script's message is lost", "received", func(m *queue.Message) { m.ID = "" }),
		{"nobody can try the script that is claimed", func() queuetest.Harness {
			h := scriptedHarness(func(*queue.Message) {})
			h.Script = nil
			return h
		}, caught, "no Script"},
	}
}
