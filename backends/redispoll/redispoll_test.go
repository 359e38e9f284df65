package redispoll_test

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/redistest"
	"queuelab/backends/redispoll"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
	"queuelab/queue/queuetest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var backend = redistest.Backend{Scheme: "redis+poll", Open: redispoll.Open}

const setting = "aof-everysec"

func TestConformance(t *testing.T) {
	h := backend.Harness(brokertest.Start(t, "redis", setting), "", 200*time.Millisecond)
	h.Freeze = nil // the publisher is redislist's
	queuetest.Run(t, h)
}

// asked is how many RPOPs the server has seen.
func asked(t *testing.T, c *redis.Client) int {
	t.Helper()
	stats, err := c.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`cmdstat_rpop:calls=(\d+)`).FindStringSubmatch(stats)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAWaitingConsumerAsksAndAnIdleOneDoesNot(t *testing.T) {
	server := brokertest.Start(t, "redis", setting)
	look := redistest.Client(t, server)
	c, p := redistest.Both(t, backend.Queue(t, server, "ask", "interval=1ms"))
	before := asked(t, look)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := make(chan []*queue.Delivery, 1)
	go func() {
		ds, _ := c.Receive(ctx, 1)
		got <- ds
	}()
	redistest.Eventually(t, "the consumer has asked a hundred times", func() bool { return asked(t, look) >= before+100 })
	if err := p.Publish(t.Context(), queue.Message{ID: "1"}); err != nil {
		t.Fatal(err)
	}
	if ds := <-got; len(ds) != 1 || ds[0].ID != "1" {
		t.Errorf("got %d deliveries, want the message", len(ds))
	}
	after := asked(t, look)
	for range 50 { // any of these could be the moment of another question
		if n := asked(t, look); n != after {
			t.Fatalf("questions while nobody receives: got %d more, want none", n-after)
		}
	}
}

func TestALostReplyIsALostMessage(t *testing.T) {
	server := brokertest.Start(t, "redis", setting)
	proxy := redistest.NewProxy(t, server)
	c, _ := redistest.Both(t, backend.At(t, proxy.URL(backend, "lost", "")))
	_, p := redistest.Both(t, backend.Queue(t, server, "lost", ""))
	for _, id := range []string{"1", "2"} {
		if err := p.Publish(t.Context(), queue.Message{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	proxy.LoseReply("rpop")
	if ds, err := c.Receive(t.Context(), 1); err == nil {
		t.Fatalf("receive whose reply is lost: got %d deliveries, want an error", len(ds))
	}
	if ds := redistest.Take(t, c, 1); ds[0].ID != "2" {
		t.Errorf("next message: got %s, want 2: at most once", ds[0].ID)
	}
}
