package redisconn_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"queuelab/backends/redislist"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

func TestSentinelsAndTheNameOfTheMasterBelongTogether(t *testing.T) {
	s, err := parse(t, "redis+list://any/0?sentinel=a:1,b:2&master=lab&wait=1")
	if err != nil || s.Sentinels != "a:1,b:2" || s.Master != "lab" || s.Wait != 1 {
		t.Errorf("got %+v, %v, want the Sentinels, the master and the replicas of the URL", s, err)
	}
	for raw, want := range map[string]string{
		"redis+list://h/0?sentinel=a:1":         "master=NAME",
		"redis+list://h/0?master=lab":           "sentinel=host:port",
		"redis+list://h/0?sentinel=a&master=m":  "host:port",
		"redis+list:///0?sentinel=a:1&master=m": "names no host",
	} {
		if _, err := parse(t, raw); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want it to say %q", raw, err, want)
		}
	}
}

func open(t *testing.T, raw string) queue.Queue {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	q, err := redislist.Open(ctx, u)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

func TestWhatTooFewReplicasHaveIsUnknownAndStored(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	b := brokertest.Start(t, "redis", "no-persistence")
	q := open(t, b.QueueURL("redis+list", "unreplicated", "wait=1&timeout=300ms"))
	if c := q.Capabilities(); c.Confirm != queue.ConfirmReplicas {
		t.Errorf("got confirm by %v, want by replicas", c.Confirm)
	}
	p, err := q.Publisher(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Publish(ctx, queue.Message{ID: "one"}, queue.Message{ID: "two"})
	for i := range 2 {
		if got := queue.OutcomeOf(err, i); got != queue.Unknown {
			t.Errorf("message %d: got %v, %v, want unknown: no replica has it", i, got, err)
		}
	}
	if n, err := q.(queue.Backlogger).Backlog(ctx); err != nil || n.Ready != 2 {
		t.Errorf("got a backlog of %+v, %v, want both, once each", n, err)
	}
}

func TestAFailoverKeepsOnlyWhatWasWaitedFor(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	b := brokertest.Start(t, "redis-sentinel", "")
	for query, durable := range map[string]bool{"": false, "wait=1": true} {
		q := open(t, b.QueueURL("redis+list", "replicated", query))
		if got := q.Capabilities().Durable; got != durable {
			t.Errorf("%q: got durable %v, want %v", query, got, durable)
		}
		p, err := q.Publisher(ctx)
		if err == nil {
			err = p.Publish(ctx, queue.Message{ID: "one"})
		}
		if err != nil {
			t.Errorf("%q: got %v, want it accepted", query, err)
		}
	}
}
