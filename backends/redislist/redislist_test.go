package redislist_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/redistest"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

func msg(id string) queue.Message { return queue.Message{ID: id, Key: "k", Body: []byte("b")} }

func length(t *testing.T, c *redis.Client, name string) int64 {
	t.Helper()
	n, err := c.LLen(t.Context(), "list:{"+name+"}").Result()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func blocked(t *testing.T, c *redis.Client) string {
	t.Helper()
	info, err := c.Info(t.Context(), "clients").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(info, "blocked_clients:")
	n, _, _ := strings.Cut(after, "\r\n")
	return n
}

type result struct {
	ds  []*queue.Delivery
	err error
}

func receive(ctx context.Context, c queue.Consumer) chan result {
	ch := make(chan result, 1)
	go func() {
		ds, err := c.Receive(ctx, 10)
		ch <- result{ds, err}
	}()
	return ch
}

// ghost leaves a consumer whose cancelled Receive had popped all but so many of
// the messages 1, 2 and 3, with the reply still under way.
func ghost(t *testing.T, name, query string, left int64) (q queue.Queue, proxy *redistest.Proxy, c queue.Consumer, look *redis.Client) {
	server := brokertest.Start(t, "redis", "no-persistence")
	look = redistest.Client(t, server)
	proxy = redistest.NewProxy(t, server)
	c, err := backend.At(t, proxy.URL(backend, name, query)).Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	q = backend.Queue(t, server, name, "")
	_, p := redistest.Both(t, q)

	ctx, cancel := context.WithCancel(t.Context())
	ch := receive(ctx, c)
	redistest.Eventually(t, "the server blocks the consumer", func() bool { return blocked(t, look) == "1" })
	proxy.Silence(true)
	if err := p.Publish(t.Context(), msg("1"), msg("2"), msg("3")); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "the message is popped", func() bool { return length(t, look, name) == left })
	cancel()
	if r := <-ch; !errors.Is(r.err, context.Canceled) || len(r.ds) > 0 {
		t.Fatalf("cancelled Receive: got %d deliveries and %v, want context.Canceled", len(r.ds), r.err)
	}
	return q, proxy, c, look
}

func TestAReplyAfterItsReceiveWasCancelledIsForTheNext(t *testing.T) {
	_, proxy, c, _ := ghost(t, "late", "", 2)
	proxy.Silence(false)
	ds := append(redistest.Take(t, c, 1), redistest.Take(t, c, 1)...)
	if ds[0].ID != "1" || ds[1].ID != "2" {
		t.Errorf("got %s, %s, want 1, 2", ds[0].ID, ds[1].ID)
	}
}

func TestAReplyThatNobodyCameForIsPushedBackInItsPlace(t *testing.T) {
	for query, left := range map[string]int64{"batch=1": 2, "batch=2": 1, "batch=10": 0} {
		t.Run(query, func(t *testing.T) {
			q, proxy, c, look := ghost(t, "pushback", query, left)
			proxy.Silence(false)
			if err := c.Close(); err != nil {
				t.Fatalf("close: %v", err)
			}
			if n := length(t, look, "pushback"); n != 3 {
				t.Errorf("messages on the list: got %d, want 3", n)
			}
			other, _ := redistest.Both(t, q)
			for i, d := range redistest.Take(t, other, 3) {
				if want := fmt.Sprint(i + 1); d.ID != want {
					t.Errorf("next message: got %s, want %s", d.ID, want)
				}
			}
		})
	}
}

func TestACancelledReceiveDoesNotTakeFromOthers(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	look := redistest.Client(t, server)
	q := backend.Queue(t, server, "others", "")
	idle, p := redistest.Both(t, q)
	if err := look.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ch := receive(ctx, idle)
	redistest.Eventually(t, "the server blocks the consumer", func() bool { return blocked(t, look) == "1" })
	cancel()
	<-ch
	redistest.Eventually(t, "the block is lifted", func() bool {
		stats, err := look.Info(t.Context(), "commandstats").Result()
		return err == nil && strings.Contains(stats, "cmdstat_client|unblock:") && blocked(t, look) == "0"
	})
	if err := p.Publish(t.Context(), msg("1")); err != nil {
		t.Fatal(err)
	}
	if n := length(t, look, "others"); n != 1 {
		t.Errorf("messages on the list while nobody waits: got %d, want 1", n)
	}
}

func TestALostReplyToAPublishIsUnknownAndStoredOnce(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	look := redistest.Client(t, server)
	proxy := redistest.NewProxy(t, server)
	_, p := redistest.Both(t, backend.At(t, proxy.URL(backend, "lostpush", "")))
	if err := p.Publish(t.Context(), msg("warm")); err != nil { // a cold pool hides a second try
		t.Fatal(err)
	}
	proxy.LoseReply("lpush")
	err := p.Publish(t.Context(), msg("1"), msg("2"))
	if err == nil {
		t.Fatal("publish without a reply: got nil, want an error")
	}
	for i := range 2 {
		if got := queue.OutcomeOf(err, i); got != queue.Unknown {
			t.Errorf("message %d: got %v, want unknown", i, got)
		}
	}
	if n := length(t, look, "lostpush"); n != 3 || proxy.Lost() != 1 {
		t.Errorf("messages on the list: got %d after %d lost replies, want 3 after 1", n, proxy.Lost())
	}
}

func TestALostReplyToAPopIsVisible(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	look := redistest.Client(t, server)
	proxy := redistest.NewProxy(t, server)
	c, p := redistest.Both(t, backend.At(t, proxy.URL(backend, "lostpop", "")))
	proxy.LoseReply("brpop")
	if err := p.Publish(t.Context(), msg("1"), msg("2")); err != nil {
		t.Fatal(err)
	}
	if ds, err := c.Receive(t.Context(), 1); err == nil || errors.Is(err, redis.Nil) {
		t.Errorf("receive whose reply is lost: got %v and %v, want an error", ds, err)
	}
	if n := length(t, look, "lostpop"); n != 1 {
		t.Errorf("messages on the list: got %d, want 1: at most once", n)
	}
	if ds := redistest.Take(t, c, 1); ds[0].ID != "2" {
		t.Errorf("next message: got %s, want 2", ds[0].ID)
	}
}

func TestAForeignValueIsAnErrorAndNoEnd(t *testing.T) {
	for _, batch := range []int{1, 10} {
		t.Run(fmt.Sprintf("batch %d", batch), func(t *testing.T) {
			server := brokertest.Start(t, "redis", "no-persistence")
			look := redistest.Client(t, server)
			name := fmt.Sprintf("foreign%d", batch)
			c, p := redistest.Both(t, backend.Queue(t, server, name, fmt.Sprintf("batch=%d", batch)))
			publish := func(id string) {
				t.Helper()
				if err := p.Publish(t.Context(), msg(id)); err != nil {
					t.Fatal(err)
				}
			}
			publish("1")
			if err := look.LPush(t.Context(), "list:{"+name+"}", "hello").Err(); err != nil {
				t.Fatal(err)
			}
			publish("2")
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			var got []string
			failed := 0
			for len(got) < 2 || failed < 1 {
				ds, err := c.Receive(ctx, 10)
				if ctx.Err() != nil {
					t.Fatalf("got %v and %d errors, want 2 messages and 1 error", got, failed)
				}
				if err != nil {
					failed++
				}
				for _, d := range ds {
					got = append(got, d.ID)
				}
			}
			if failed != 1 || got[0] != "1" || got[1] != "2" {
				t.Errorf("got %v and %d errors, want [1 2] and 1", got, failed)
			}
		})
	}
}

func TestAWrongTypeIsRejected(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	look := redistest.Client(t, server)
	if err := look.Set(t.Context(), "list:{wrongtype}", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	q := backend.Queue(t, server, "wrongtype", "")
	p, err := q.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := queue.OutcomeOf(p.Publish(t.Context(), msg("1")), 0); got != queue.Rejected {
		t.Errorf("publish to a key that is no list: got %v, want rejected", got)
	}
}

func TestAPublishWithoutAServerIsRejected(t *testing.T) {
	server := brokertest.Start(t, "redis", "aof-everysec")
	proxy := redistest.NewProxy(t, server)
	q := backend.At(t, proxy.URL(backend, "down", ""))
	p, err := q.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	proxy.Stop()
	if err := p.Publish(t.Context(), msg("1")); queue.OutcomeOf(err, 0) != queue.Rejected {
		t.Errorf("publish with nothing listening: got %v, want rejected", err)
	}
}

func TestCapabilitiesAreTrueForTheServer(t *testing.T) {
	for setting, want := range map[string]queue.Confirm{
		"no-persistence": queue.ConfirmMemory, "aof-everysec": queue.ConfirmOS, "aof-always": queue.ConfirmDisk,
	} {
		caps := backend.Queue(t, brokertest.Start(t, "redis", setting), "caps", "").Capabilities()
		if caps.Confirm != want || caps.Durable != (want != queue.ConfirmMemory) {
			t.Errorf("%s: got %v, durable %v, want %v", setting, caps.Confirm, caps.Durable, want)
		}
	}
}

func TestOnlyPubSubCountsReceivers(t *testing.T) {
	_, p := redistest.Both(t, backend.Queue(t, brokertest.Start(t, "redis", "no-persistence"), "counter", ""))
	if _, ok := p.(queue.ReceiverCounter); ok {
		t.Error("the publisher is a queue.ReceiverCounter, want that it is not: a list keeps what nobody takes")
	}
}
