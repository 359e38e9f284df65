package redispubsub_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"queuelab/backends/internal/redistest"
	"queuelab/backends/redispubsub"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

func publish(t *testing.T, p queue.Publisher, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := p.Publish(t.Context(), queue.Message{ID: id}); err != nil {
			t.Fatalf("publish: %v", err)
		}
	}
}

// loss receives the one loss that must come next.
func loss(t *testing.T, c queue.Consumer) *redispubsub.LossError {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ds, err := c.Receive(ctx, 1)
	var l *redispubsub.LossError
	if !errors.As(err, &l) {
		t.Fatalf("got %d deliveries and %v, want a *LossError", len(ds), err)
	}
	return l
}

func losses(c queue.Consumer) redispubsub.Losses { return c.(redispubsub.LossCounter).Losses() }

func TestAPublishTellsHowManyHeardIt(t *testing.T) {
	q := backend.Queue(t, brokertest.Start(t, "redis", "no-persistence"), "heard", "")
	p, err := q.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for want := range int64(3) {
		got, err := p.(queue.ReceiverCounter).PublishCounted(t.Context(), queue.Message{ID: "1"}, queue.Message{ID: "2"})
		if err != nil || len(got) != 2 || got[0] != want || got[1] != want {
			t.Errorf("receivers with %d consumers: got %v, %v", want, got, err)
		}
		if _, err := q.Consumer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatHasNoRoomIsCountedAndToldInItsPlace(t *testing.T) {
	c, p := redistest.Both(t, backend.Queue(t, brokertest.Start(t, "redis", "no-persistence"), "full", "buffer=3"))
	publish(t, p, "1", "2", "3", "4", "5")
	redistest.Eventually(t, "two are dropped", func() bool { return losses(c).Dropped == 2 })
	first := redistest.Take(t, c, 2)
	publish(t, p, "6", "7", "8")
	redistest.Eventually(t, "one more is dropped", func() bool { return losses(c).Dropped == 3 })
	var got []string
	for _, d := range append(first, redistest.Take(t, c, 1)...) {
		got = append(got, d.ID)
	}
	got = append(got, fmt.Sprint("lost ", loss(t, c).Dropped))
	for _, d := range redistest.Take(t, c, 2) {
		got = append(got, d.ID)
	}
	got = append(got, fmt.Sprint("lost ", loss(t, c).Dropped))
	if want := "[1 2 3 lost 2 6 7 lost 1]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestAGapIsToldAndCounted(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	for name, breakIt := range map[string]func(*redistest.Proxy){
		"a cut connection": (*redistest.Proxy).Cut,
		"a silent peer": func(p *redistest.Proxy) {
			p.Silence(true)
			time.AfterFunc(time.Second, func() { p.Silence(false) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := redistest.NewProxy(t, server)
			c, err := backend.At(t, proxy.URL(backend, "gap", "timeout=200ms")).Consumer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			p, err := backend.Queue(t, server, "gap", "").Publisher(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			publish(t, p, "before")
			redistest.Take(t, c, 1)
			breakIt(proxy)
			if l := loss(t, c); l.Cause == nil || l.Gap <= 0 {
				t.Errorf("got %+v, want a gap with its cause", l)
			}
			if got := losses(c).Gaps; got != 1 {
				t.Errorf("gaps: got %d, want 1", got)
			}
			publish(t, p, "after")
			if d := redistest.Take(t, c, 1)[0]; d.ID != "after" {
				t.Errorf("got message %s, want after", d.ID)
			}
		})
	}
}

func TestAnIdleSubscriptionIsNoGap(t *testing.T) {
	c, _ := redistest.Both(t, backend.Queue(t, brokertest.Start(t, "redis", "no-persistence"), "idle", "timeout=100ms"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // ten timeouts
	defer cancel()
	if ds, err := c.Receive(ctx, 1); !errors.Is(err, context.DeadlineExceeded) || losses(c) != (redispubsub.Losses{}) {
		t.Errorf("got %d deliveries, %v and %+v, want nothing and no loss", len(ds), err, losses(c))
	}
}

func TestAForeignValueIsTold(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	c, p := redistest.Both(t, backend.Queue(t, server, "foreign", ""))
	publish(t, p, "1")
	if err := redistest.Client(t, server).Publish(t.Context(), "pubsub:0:{foreign}", "hello").Err(); err != nil {
		t.Fatal(err)
	}
	publish(t, p, "2")
	redistest.Take(t, c, 1)
	if l := loss(t, c); l.Foreign != 1 {
		t.Errorf("got %+v, want one foreign value", l)
	}
	redistest.Take(t, c, 1)
}

func TestALostReplyToAPublishIsUnknownAndHeardOnce(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	proxy := redistest.NewProxy(t, server)
	c, err := backend.Queue(t, server, "lost", "").Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := backend.At(t, proxy.URL(backend, "lost", "")).Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	publish(t, p, "warm")
	proxy.LoseReply("publish")
	if got := queue.OutcomeOf(p.Publish(t.Context(), queue.Message{ID: "1"}), 0); got != queue.Unknown {
		t.Errorf("got %v, want unknown", got)
	}
	publish(t, p, "2")
	var got []string
	for _, d := range redistest.Take(t, c, 3) {
		got = append(got, d.ID)
	}
	if want := "[warm 1 2]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestAConsumerIsNotReadyBeforeTheServerSaysSo(t *testing.T) {
	proxy := redistest.NewProxy(t, brokertest.Start(t, "redis", "no-persistence"))
	q := backend.At(t, proxy.URL(backend, "confirm", "timeout=200ms"))
	c, err := q.Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	proxy.LoseReply("subscribe")
	if _, err := q.Consumer(t.Context()); err == nil {
		t.Error("consumer whose subscription was not confirmed: got nil, want an error")
	}
}
