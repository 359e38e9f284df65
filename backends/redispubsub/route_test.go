package redispubsub_test

import (
	"fmt"
	"slices"
	"testing"

	"queuelab/backends/internal/redistest"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

func TestAConsumerHearsTheChannelsAndPatternsThatItIsBoundTo(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	keys := []string{"order.paid", "order.late", "refund", "stock", ""}
	for _, c := range []struct {
		name, bind string
		heard      []string
	}{
		{"all", "", keys},
		{"one-channel", "bind=refund", []string{"refund"}},
		{"several-channels", "bind=refund,stock,nobody", []string{"refund", "stock"}},
		{"a-pattern", "bind=order.*", []string{"order.paid", "order.late"}},
		{"both", "bind=order.l?te,stock", []string{"order.late", "stock"}},
		{"both-match", "bind=refund,re*", []string{"refund", "refund"}}, // as Redis has it
	} {
		t.Run(c.name, func(t *testing.T) {
			q := backend.Queue(t, server, c.name, "route=key&"+c.bind)
			consumer, p := redistest.Both(t, q)
			var want []int64
			for _, key := range keys {
				n := 0
				for _, h := range c.heard {
					if h == key {
						n++
					}
				}
				want = append(want, int64(n))
			}
			var ms []queue.Message
			for _, key := range keys {
				ms = append(ms, queue.Message{ID: "m", Key: key})
			}
			receivers, err := p.(queue.ReceiverCounter).PublishCounted(t.Context(), ms...)
			if err != nil || !slices.Equal(receivers, want) {
				t.Errorf("receivers: got %v, %v, want %v", receivers, err, want)
			}
			var got []string
			for _, d := range redistest.Take(t, consumer, len(c.heard)) {
				got = append(got, d.Key)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.heard) {
				t.Errorf("heard: got %q, want %q", got, c.heard)
			}
		})
	}
}

func TestAGapOfSeveralChannelsIsToldOnce(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	proxy := redistest.NewProxy(t, server)
	c, err := backend.At(t, proxy.URL(backend, "gaps", "route=key&bind=a,b,c*")).Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	proxy.Cut()
	loss(t, c)
	p, err := backend.Queue(t, server, "gaps", "route=key").Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b", "cc"} {
		if err := p.Publish(t.Context(), queue.Message{ID: key, Key: key}); err != nil {
			t.Fatal(err)
		}
		if d := redistest.Take(t, c, 1)[0]; d.ID != key {
			t.Errorf("after the gap: got message %s, want %s", d.ID, key)
		}
	}
	if n := losses(c).Gaps; n != 1 {
		t.Errorf("gaps: got %d, want 1", n)
	}
}

func TestABindingNeedsARoute(t *testing.T) {
	if q, err := backend.Try(brokertest.Start(t, "redis", "no-persistence").QueueURL(backend.Scheme, "bad", "bind=a")); err == nil {
		q.Close()
		t.Error("bind without route=key: got nil, want an error")
	}
}
