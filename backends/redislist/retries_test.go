package redislist_test

import (
	"strings"
	"testing"

	"queuelab/backends/internal/redistest"
	"queuelab/bench/broker/brokertest"
)

func TestWithRetriesALostReplyToAPublishIsASecondCopyAndNoError(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	proxy := redistest.NewProxy(t, server)
	_, p := redistest.Both(t, backend.At(t, proxy.URL(backend, "retriedpush", "retries=3")))
	if err := p.Publish(t.Context(), msg("warm")); err != nil { // a cold pool hides a second try
		t.Fatal(err)
	}
	proxy.LoseReply("lpush")
	if err := p.Publish(t.Context(), msg("1")); err != nil {
		t.Errorf("publish whose reply is lost: got %v, want nil: go-redis says nothing of it", err)
	}
	if n := length(t, redistest.Client(t, server), "retriedpush"); n != 3 || proxy.Lost() != 1 {
		t.Errorf("messages on the list: got %d after %d lost replies, want 3 after 1: one of two was stored twice", n, proxy.Lost())
	}
}

func TestWithRetriesALostReplyToAPopIsGoneWithoutAnError(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	proxy := redistest.NewProxy(t, server)
	c, p := redistest.Both(t, backend.At(t, proxy.URL(backend, "retriedpop", "retries=3")))
	proxy.LoseReply("brpop")
	if err := p.Publish(t.Context(), msg("1"), msg("2")); err != nil {
		t.Fatal(err)
	}
	if ds := redistest.Take(t, c, 1); ds[0].ID != "2" {
		t.Errorf("got message %s, want 2: 1 was popped for a reply that never came", ds[0].ID)
	}
	if n := length(t, redistest.Client(t, server), "retriedpop"); n != 0 || proxy.Lost() != 1 {
		t.Errorf("messages on the list: got %d after %d lost replies, want 0 after 1", n, proxy.Lost())
	}
}

func TestRetriesOutOfRangeAreRefused(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	for _, value := range []string{"-1", "11", "many"} {
		_, err := backend.Try(server.QueueURL(backend.Scheme, "wrong", "retries="+value))
		if err == nil || !strings.Contains(err.Error(), "retries") {
			t.Errorf("retries=%s: got %v, want an error that names it", value, err)
		}
	}
}
