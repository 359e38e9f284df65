package rediszset_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/redistest"
	"queuelab/backends/rediszset"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
	"queuelab/queue/queuetest"
)

func TestMain(m *testing.M) { backend.Main(m) }

var backend = redistest.Backend{Scheme: "redis+zset", Open: rediszset.Open}

// setting is that of all but the suite, which kills its server.
const setting = "no-persistence"

func TestConformance(t *testing.T) {
	t.Parallel() // on a server of its own
	queuetest.Run(t, backend.Harness(brokertest.Start(t, "redis", "aof-everysec"), "claim=1s", 1200*time.Millisecond))
}

func message(id, delay string) queue.Message {
	m := queue.Message{ID: id, Key: "k", Body: []byte("b")}
	if delay != "" {
		m.Headers = map[string]string{rediszset.Header: delay}
	}
	return m
}

func publish(t *testing.T, p queue.Publisher, ms ...queue.Message) {
	t.Helper()
	if err := p.Publish(t.Context(), ms...); err != nil {
		t.Fatal(err)
	}
}

func ids(ds []*queue.Delivery) string {
	var all []string
	for _, d := range ds {
		all = append(all, d.ID)
	}
	return strings.Join(all, " ")
}

func TestADelayedMessageComesInItsTime(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t, "redis", setting)
	c, p := redistest.Both(t, backend.Queue(t, server, "delay", "delay=300ms"))
	start := time.Now()
	publish(t, p, message("later", "600ms"), message("default", ""), message("now", "0s"))
	if got := ids(redistest.Take(t, c, 1)); got != "now" {
		t.Errorf("first: got %s, want what has no delay", got)
	}
	for _, want := range []struct {
		id    string
		least time.Duration
	}{{"default", 300 * time.Millisecond}, {"later", 600 * time.Millisecond}} {
		got := ids(redistest.Take(t, c, 1))
		// The broker counts in whole milliseconds.
		if took := time.Since(start) + time.Millisecond; got != want.id || took < want.least {
			t.Errorf("got %s after %v, want %s and not before %v", got, took, want.id, want.least)
		}
	}
}

func TestAWrongDelayRejectsItsMessageAlone(t *testing.T) {
	server := brokertest.Start(t, "redis", setting)
	c, p := redistest.Both(t, backend.Queue(t, server, "wrong", ""))
	err := p.Publish(t.Context(), message("1", ""), message("2", "soon"), message("3", "-1s"), message("4", "25h"), message("5", "0s"))
	var pe *queue.PublishError
	if !errors.As(err, &pe) || !strings.Contains(err.Error(), `delay="soon"`) {
		t.Fatalf("publish: got %v, want a *PublishError that quotes the header", err)
	}
	want := []queue.Outcome{queue.Accepted, queue.Rejected, queue.Rejected, queue.Rejected, queue.Accepted}
	if diff := cmp.Diff(want, pe.Outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if got := ids(redistest.Take(t, c, 2)); got != "1 5" {
		t.Errorf("messages: got %s, want 1 5", got)
	}
}

func TestWhatADeadConsumerHeldComesAgainFirstAndIsCounted(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t, "redis", setting)
	look := redistest.Client(t, server)
	q := backend.Queue(t, server, "dead", "claim=1s")
	v := backend.Victim(t, server.QueueURL(backend.Scheme, "dead", "claim=1s"))
	p, err := q.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	publish(t, p, message("1", ""), message("2", ""), message("3", ""))
	v.Receives(t, 3)
	v.Kill()
	redistest.Eventually(t, "the dead one's time is up", func() bool {
		taken := look.ZRangeWithScores(t.Context(), "zset:{dead}:taken", 0, -1).Val()
		now := look.Time(t.Context()).Val().UnixMilli()
		return len(taken) == 3 && taken[2].Score < float64(now)
	})
	publish(t, p, message("4", ""))
	c, _ := redistest.Both(t, q)
	ds := redistest.Take(t, c, 4)
	if got := ids(ds); got != "1 2 3 4" {
		t.Errorf("messages: got %s, want 1 2 3 4", got)
	}
	if ds[0].Attempt != 2 || ds[3].Attempt != 1 {
		t.Errorf("attempts of 1 and 4: got %d and %d, want 2 and 1", ds[0].Attempt, ds[3].Attempt)
	}
	if err := c.Ack(t.Context(), ds...); err != nil {
		t.Fatal(err)
	}
	if n := look.Exists(t.Context(), "zset:{dead}", "zset:{dead}:taken", "zset:{dead}:attempts").Val(); n != 0 {
		t.Errorf("keys that are left when all is acked: got %d, want none", n)
	}
}

func TestTwoCopiesOfAMessageAreTwo(t *testing.T) {
	server := brokertest.Start(t, "redis", setting)
	c, p := redistest.Both(t, backend.Queue(t, server, "copies", ""))
	publish(t, p, message("1", ""), message("1", ""))
	publish(t, p, message("1", ""))
	if err := c.Ack(t.Context(), redistest.Take(t, c, 3)...); err != nil {
		t.Errorf("ack of three copies: %v", err)
	}
}

func TestTheBellRingsForWhatIsPublishedAndGivenBack(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t, "redis", setting)
	look := redistest.Client(t, server)
	q := backend.Queue(t, server, "rings", "")
	p, err := q.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rings := func() int64 { return look.LLen(t.Context(), "zset:{rings}:bell").Val() }
	publish(t, p, message("1", ""), message("2", ""), message("3", ""))
	if got := rings(); got != 3 {
		t.Errorf("rings for three messages: got %d, want 3", got)
	}
	c, err := q.Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ds := redistest.Take(t, c, 3)
	if err := look.Del(t.Context(), "zset:{rings}:bell").Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Nack(t.Context(), ds...); err != nil {
		t.Fatal(err)
	}
	if got := rings(); got != 3 {
		t.Errorf("rings for three that were given back: got %d, want 3", got)
	}
	publish(t, p, redistest.Messages(200)...)
	if got := rings(); got != 100 {
		t.Errorf("rings that nobody has heard: got %d, want no more than 100", got)
	}
}

func TestALostBellOnlyDelays(t *testing.T) {
	server := brokertest.Start(t, "redis", setting)
	look := redistest.Client(t, server)
	q := backend.Queue(t, server, "bell", "")
	c, p := redistest.Both(t, q)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got := make(chan string, 1)
	go func() {
		ds, _ := c.Receive(ctx, 1)
		got <- ids(ds)
	}()
	blocked := func() bool {
		info, err := look.Info(ctx, "clients").Result()
		return err == nil && strings.Contains(info, "blocked_clients:1\r\n")
	}
	redistest.Eventually(t, "the server blocks the consumer", blocked)
	// Its own bell told of a message that was not due; that it is now, none tells.
	publish(t, p, message("1", "1h"))
	redistest.Eventually(t, "the server blocks the consumer again", blocked)
	member := look.ZRange(ctx, "zset:{bell}", 0, 0).Val()
	if len(member) != 1 {
		t.Fatalf("members: got %d, want 1", len(member))
	}
	if err := look.ZAdd(ctx, "zset:{bell}", redis.Z{Member: member[0]}).Err(); err != nil {
		t.Fatal(err)
	}
	if got := <-got; got != "1" {
		t.Errorf("a message whose bell nobody heard: got %q, want it all the same", got)
	}
}

func TestALostReplyToATakeComesAgain(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t, "redis", setting)
	proxy := redistest.NewProxy(t, server)
	c, err := backend.At(t, proxy.URL(backend, "lost", "claim=1s")).Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := backend.Queue(t, server, "lost", "").Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	publish(t, p, message("1", ""))
	proxy.LoseReply("evalsha")
	failed := 0
	for {
		ds, err := c.Receive(t.Context(), 10)
		if err == nil {
			if failed == 0 || ids(ds) != "1" || ds[0].Attempt != 2 {
				t.Errorf("got %s at attempt %d after %d errors, want 1 at 2 after an error", ids(ds), ds[0].Attempt, failed)
			}
			return
		}
		if failed++; failed > 20 {
			t.Fatalf("receive fails again and again: %v", err)
		}
	}
}
