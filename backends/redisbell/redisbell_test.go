package redisbell_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"queuelab/backends/internal/redistest"
	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

func server(t *testing.T) *broker.Broker { return brokertest.Start(t, "redis", "no-persistence") }

func publish(t *testing.T, q queue.Queue, ids ...string) {
	t.Helper()
	p, err := q.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if err := p.Publish(t.Context(), queue.Message{ID: id}); err != nil {
			t.Fatalf("publish: %v", err)
		}
	}
}

func ready(t *testing.T, q queue.Queue) int64 {
	t.Helper()
	b, err := q.(queue.Backlogger).Backlog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b.Ready
}

// between publishes a message after a consumer has looked, and before it has
// subscribed, and returns what its Receive then makes of it.
func between(t *testing.T, direct queue.Queue, name, query string, patience time.Duration) (queue.Consumer, []*queue.Delivery, error) {
	t.Helper()
	proxy := redistest.NewProxy(t, server(t))
	c, err := backend.At(t, proxy.URL(backend, name, query)).Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held, release := proxy.Stopover("\r\nsubscribe")
	var ds []*queue.Delivery
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		ds, err = c.Receive(ctx, 10)
	}()
	<-held
	publish(t, direct, "1")
	release()
	<-done
	return c, ds, err
}

func TestABellBetweenLookAndWaitStrandsTheMessageUntilTheNextOne(t *testing.T) {
	direct := backend.Queue(t, server(t), "stranded", "")
	if !direct.Capabilities().MayStrand {
		t.Error("without poll: MayStrand is not claimed")
	}
	c, ds, err := between(t, direct, "stranded", "", time.Second)
	if !errors.Is(err, context.DeadlineExceeded) || ready(t, direct) != 1 {
		t.Fatalf("got %d deliveries, %v, and %d left, want the message on the list beside a consumer that waits", len(ds), err, ready(t, direct))
	}
	// It is not lost: whoever looks again has it.
	if d := redistest.Take(t, c, 1)[0]; d.ID != "1" {
		t.Errorf("got message %s, want 1", d.ID)
	}
}

func TestTheNextBellBringsTheStranded(t *testing.T) {
	direct := backend.Queue(t, server(t), "next", "")
	proxy := redistest.NewProxy(t, server(t))
	c, err := backend.At(t, proxy.URL(backend, "next", "batch=10")).Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held, release := proxy.Stopover("\r\nsubscribe")
	got := redistest.Taking(t, c, 2)
	<-held
	publish(t, direct, "1")
	release()
	look := redistest.Client(t, server(t))
	redistest.Eventually(t, "the consumer is subscribed", func() bool {
		n, err := look.PubSubNumSub(t.Context(), "bell:0:{next}").Result()
		return err == nil && n["bell:0:{next}"] == 1
	})
	if n := ready(t, direct); n != 1 {
		t.Errorf("before the next bell: got %d on the list, want 1", n)
	}
	publish(t, direct, "2")
	if ds := <-got; len(ds) != 2 || ds[0].ID != "1" || ds[1].ID != "2" {
		t.Errorf("got %d deliveries, want 1 and then 2", len(ds))
	}
}

func TestWithPollALostBellOnlyDelays(t *testing.T) {
	direct := backend.Queue(t, server(t), "polled", "poll=100ms")
	if direct.Capabilities().MayStrand {
		t.Error("with poll: MayStrand is claimed")
	}
	if _, ds, err := between(t, direct, "polled", "poll=100ms", 10*time.Second); err != nil || len(ds) != 1 {
		t.Errorf("got %d deliveries and %v, want the message", len(ds), err)
	}
}

func TestABrokenBellIsToldAndTheNextReceiveLooks(t *testing.T) {
	direct := backend.Queue(t, server(t), "broken", "")
	proxy := redistest.NewProxy(t, server(t))
	c, err := backend.At(t, proxy.URL(backend, "broken", "")).Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := c.Receive(t.Context(), 1)
		failed <- err
	}()
	look := redistest.Client(t, server(t))
	redistest.Eventually(t, "the consumer is subscribed", func() bool {
		n, err := look.PubSubNumSub(t.Context(), "bell:0:{broken}").Result()
		return err == nil && n["bell:0:{broken}"] == 1
	})
	proxy.Cut()
	if err := <-failed; err == nil {
		t.Error("a Receive whose bell broke: got nil, want an error")
	}
	publish(t, direct, "1")
	redistest.Eventually(t, "the message comes", func() bool {
		ds, err := c.Receive(t.Context(), 1)
		return err == nil && len(ds) == 1
	})
}

func TestOneRingWakesAllThatWait(t *testing.T) {
	q := backend.Queue(t, server(t), "all", "")
	var got []<-chan []*queue.Delivery
	for range 2 {
		c, err := q.Consumer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, redistest.Taking(t, c, 1))
	}
	look := redistest.Client(t, server(t))
	redistest.Eventually(t, "both are subscribed", func() bool {
		n, err := look.PubSubNumSub(t.Context(), "bell:0:{all}").Result()
		return err == nil && n["bell:0:{all}"] == 2
	})
	p, err := q.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(t.Context(), queue.Message{ID: "1"}, queue.Message{ID: "2"}); err != nil {
		t.Fatal(err)
	}
	came := map[string]bool{}
	for _, ch := range got {
		for _, d := range <-ch {
			came[d.ID] = true
		}
	}
	if !came["1"] || !came["2"] {
		t.Errorf("got %v, want 1 and 2", came)
	}
}

func TestAPollThatWouldBeABusyLoopIsRefused(t *testing.T) {
	if q, err := backend.Try(server(t).QueueURL(backend.Scheme, "bad", "poll=1ms")); err == nil {
		q.Close()
		t.Error("poll=1ms: got nil, want an error")
	}
}
