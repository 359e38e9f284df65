package redisstreams_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/redistest"
	"queuelab/backends/redisstreams"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

const group = "workers"

func stream(name string) string { return "stream:{" + name + "}" }

func publish(t *testing.T, p queue.Publisher, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := p.Publish(t.Context(), queue.Message{ID: id, Key: "k", Body: []byte("b")}); err != nil {
			t.Fatalf("publish: %v", err)
		}
	}
}

func settle(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("settle: %v", err)
	}
}

func pending(t *testing.T, c *redis.Client, name string) *redis.XPending {
	t.Helper()
	p, err := c.XPending(t.Context(), stream(name), group).Result()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func names(t *testing.T, c *redis.Client, name string) map[string]int64 {
	t.Helper()
	cs, err := c.XInfoConsumers(t.Context(), stream(name), group).Result()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, c := range cs {
		out[c.Name] = c.Pending
	}
	return out
}

// nothing asserts that no message comes for that long.
func nothing(t *testing.T, c queue.Consumer, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if ds, err := c.Receive(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %d deliveries and %v, want none", len(ds), err)
	}
}

func TestALostReplyToAPublishIsUnknownAndStoredOnce(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	proxy := redistest.NewProxy(t, server)
	_, p := redistest.Both(t, backend.At(t, proxy.URL(backend, "lostadd", "")))
	publish(t, p, "warm")
	proxy.LoseReply("xadd")
	err := p.Publish(t.Context(), queue.Message{ID: "1"}, queue.Message{ID: "2"})
	for i := range 2 {
		if got := queue.OutcomeOf(err, i); got != queue.Unknown {
			t.Errorf("message %d: got %v, want unknown", i, got)
		}
	}
	if n := redistest.Client(t, server).XLen(t.Context(), stream("lostadd")).Val(); n != 3 || proxy.Lost() != 1 {
		t.Errorf("entries: got %d after %d lost replies, want 3 after 1", n, proxy.Lost())
	}
}

func TestALostReplyToAReadIsReadAgainByItsConsumer(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	proxy := redistest.NewProxy(t, server)
	c, p := redistest.Both(t, backend.At(t, proxy.URL(backend, "lostread", "claim=1h")))
	publish(t, p, "0")
	held := redistest.Take(t, c, 1) // must not come again with the others
	publish(t, p, "1", "2", "3")
	proxy.LoseReply("xreadgroup")
	if ds, err := c.Receive(t.Context(), 3); err == nil {
		t.Fatalf("receive whose reply is lost: got %d deliveries, want an error", len(ds))
	}
	ds := redistest.Take(t, c, 3)
	for i, d := range ds {
		if want := fmt.Sprint(i + 1); d.ID != want || d.Attempt != 1 {
			t.Errorf("got message %s, attempt %d, want %s, 1", d.ID, d.Attempt, want)
		}
	}
	settle(t, c.Ack(t.Context(), append(ds, held...)...))
	nothing(t, c, 100*time.Millisecond)
	if n := pending(t, redistest.Client(t, server), "lostread").Count; n != 0 {
		t.Errorf("pending: got %d, want 0", n)
	}
}

func TestALostReplyToAnAckCanBeTriedAgain(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	proxy := redistest.NewProxy(t, server)
	for _, op := range []string{"ack", "nack"} {
		q := backend.At(t, proxy.URL(backend, "lost"+op, "claim=1h"))
		c, p := redistest.Both(t, q)
		publish(t, p, "0", "1")
		ds := redistest.Take(t, c, 2)
		d := ds[1]
		do := map[string]func(context.Context, ...*queue.Delivery) error{"ack": c.Ack, "nack": c.Nack}[op]
		// The first answer to a script is that the server does not know it.
		settle(t, do(t.Context(), ds[0]))
		if op == "nack" {
			settle(t, c.Ack(t.Context(), redistest.Take(t, c, 1)...))
		}
		proxy.LoseReply("evalsha")
		if err := do(t.Context(), d); err == nil || errors.Is(err, queue.ErrLeaseLost) || d.Settled() {
			t.Errorf("%s whose reply is lost: got %v, settled %v, want another error, unsettled", op, err, d.Settled())
		}
		settle(t, do(t.Context(), d))
		if op == "nack" {
			d = redistest.Take(t, c, 1)[0]
			settle(t, c.Ack(t.Context(), d))
		}
		nothing(t, c, 50*time.Millisecond)
	}
}

func TestScriptFlushHurtsNothing(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	look := redistest.Client(t, server)
	c, p := redistest.Both(t, backend.Queue(t, server, "flush", ""))
	publish(t, p, "1", "2")
	ds := redistest.Take(t, c, 2)
	for i, do := range []func(context.Context, ...*queue.Delivery) error{c.Ack, c.Nack} {
		if err := look.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		settle(t, do(t.Context(), ds[i]))
	}
	if err := look.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if d := redistest.Take(t, c, 1)[0]; d.ID != "2" || d.Attempt != 2 {
		t.Errorf("got message %s, attempt %d, want 2, 2", d.ID, d.Attempt)
	}
}

func TestAStreamThatIsGoneIsCreatedAgain(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	look := redistest.Client(t, server)
	for name, gone := range map[string]func() error{
		"deleted":   func() error { return look.Del(t.Context(), stream("heal")).Err() },
		"no group":  func() error { return look.XGroupDestroy(t.Context(), stream("heal"), group).Err() },
		"no hints":  func() error { return look.Del(t.Context(), stream("heal")+":hints:"+group).Err() },
		"flushed":   func() error { return look.FlushAll(t.Context()).Err() },
		"wrong key": func() error { return look.Rename(t.Context(), stream("heal"), "elsewhere").Err() },
	} {
		for _, blocked := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, blocked %v", name, blocked), func(t *testing.T) {
				q := backend.Queue(t, server, "heal", "")
				defer q.Delete(context.Background())
				c, p := redistest.Both(t, q)
				publish(t, p, "before")
				settle(t, c.Ack(t.Context(), redistest.Take(t, c, 1)...))
				if !blocked {
					if err := gone(); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
				defer cancel()
				failed, start := 0, time.Now()
				got := make(chan string)
				go func() {
					for ctx.Err() == nil {
						ds, err := c.Receive(ctx, 1)
						if errors.Is(err, redisstreams.ErrRecreated) {
							failed++
						} else if err != nil && ctx.Err() == nil {
							t.Errorf("receive: got %v, want ErrRecreated", err)
						}
						for _, d := range ds {
							if d.ID != "before" { // a new group begins at the oldest entry
								got <- d.ID
								return
							}
						}
					}
					close(got)
				}()
				if blocked {
					redistest.Eventually(t, "the consumer is blocked", func() bool {
						return strings.Contains(look.Info(t.Context(), "clients").Val(), "blocked_clients:1")
					})
					if err := gone(); err != nil {
						t.Fatal(err)
					}
				}
				publish(t, p, "after")
				if id := <-got; id != "after" {
					t.Errorf("got message %q, want after", id)
				}
				if most := 1 + int(10*time.Since(start).Seconds()); failed < 1 || failed > most {
					t.Errorf("errors: got %d, want 1 to %d", failed, most)
				}
			})
		}
	}
}

func TestAnEntryWithoutABodyIsAckedAwayAndTold(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	look := redistest.Client(t, server)
	proxy := redistest.NewProxy(t, server)
	dead, p := redistest.Both(t, backend.At(t, proxy.URL(backend, "gone", "claim=1s")))
	publish(t, p, "1", "2", "3")
	redistest.Take(t, dead, 3)
	proxy.Silence(true) // from here on its leases run out
	defer proxy.Silence(false)
	ids := look.XRange(t.Context(), stream("gone"), "-", "+").Val()
	if err := look.XDel(t.Context(), stream("gone"), ids[0].ID, ids[1].ID).Err(); err != nil {
		t.Fatal(err)
	}
	c, _ := redistest.Both(t, backend.Queue(t, server, "gone", "claim=1s"))
	lost := 0
	var got []string
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for lost < 2 || len(got) < 1 {
		ds, err := c.Receive(ctx, 10)
		var gone *redisstreams.GoneError
		if errors.As(err, &gone) {
			lost += gone.Entries
		} else if err != nil {
			t.Fatalf("receive: %v; lost %d, got %v", err, lost, got)
		}
		for _, d := range ds {
			got = append(got, d.ID)
			settle(t, c.Ack(ctx, d))
		}
	}
	if lost != 2 || len(got) != 1 || got[0] != "3" {
		t.Errorf("got %v and %d gone, want [3] and 2", got, lost)
	}
	if n := pending(t, look, "gone").Count; n != 0 {
		t.Errorf("pending: got %d, want 0", n)
	}
}

func TestAForeignEntryIsAckedAwayAndTold(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	look := redistest.Client(t, server)
	c, p := redistest.Both(t, backend.Queue(t, server, "foreign", ""))
	if err := look.XAdd(t.Context(), &redis.XAddArgs{Stream: stream("foreign"), Values: []string{"a", "b"}}).Err(); err != nil {
		t.Fatal(err)
	}
	if ds, err := c.Receive(t.Context(), 1); err == nil {
		t.Errorf("receive of a foreign entry: got %d deliveries, want an error", len(ds))
	}
	publish(t, p, "1")
	redistest.Take(t, c, 1)
	if n := pending(t, look, "foreign").Count; n != 1 {
		t.Errorf("pending: got %d, want 1", n)
	}
}

func TestANackIsTakenAtOnceByAnyConsumer(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	q := backend.Queue(t, server, "nack", "claim=1h")
	a, p := redistest.Both(t, q)
	b, _ := redistest.Both(t, q)
	publish(t, p, "1", "2", "3")
	ds := redistest.Take(t, a, 3)
	settle(t, a.Nack(t.Context(), ds...))
	for attempt := 2; attempt < 5; attempt++ {
		ds = redistest.Take(t, b, 3)
		for i, d := range ds {
			if want := fmt.Sprint(i + 1); d.ID != want || d.Attempt != attempt {
				t.Errorf("got message %s, attempt %d, want %s, %d", d.ID, d.Attempt, want, attempt)
			}
		}
		settle(t, b.Nack(t.Context(), ds...))
	}
	backlog, err := q.(queue.Backlogger).Backlog(t.Context())
	if want := (queue.Backlog{Ready: 3, Dead: -1}); err != nil || backlog != want {
		t.Errorf("backlog: got %+v, %v, want %+v", backlog, err, want)
	}
}

func TestTrimmingRemovesOnlyWhatEveryGroupHasReadAndAcked(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	look := redistest.Client(t, server)
	// One node holds 100 entries and goes as a whole.
	const n = 1000
	open := func(query string) (queue.Consumer, queue.Publisher) {
		return redistest.Both(t, backend.Queue(t, server, "trim", "claim=1s&trim=10ms&"+query))
	}
	a, p := open("")
	b, _ := open("group=audit")
	if _, ok := p.(queue.ReceiverCounter); ok {
		t.Error("the publisher is a queue.ReceiverCounter, want that it is not")
	}
	ms := make([]queue.Message, n)
	for i := range ms {
		ms[i] = queue.Message{ID: fmt.Sprint(i)}
	}
	if err := p.Publish(t.Context(), ms...); err != nil {
		t.Fatal(err)
	}
	length := func() int64 { return look.XLen(t.Context(), stream("trim")).Val() }
	oldest := func() string {
		return look.XRangeN(t.Context(), stream("trim"), "-", "+", 1).Val()[0].Values["id"].(string)
	}

	settle(t, a.Ack(t.Context(), redistest.Take(t, a, n)...))
	ds := redistest.Take(t, b, 600)
	settle(t, b.Ack(t.Context(), ds[:250]...)) // b has 350 pending and 400 unread
	redistest.Eventually(t, "the first two nodes are trimmed", func() bool { return length() == n-200 })
	if got := oldest(); got != "200" {
		t.Errorf("oldest entry: got %s, want 200, with 250 the oldest pending", got)
	}
	settle(t, b.Ack(t.Context(), ds[250:]...))
	redistest.Eventually(t, "all that both have read is trimmed", func() bool { return length() <= 500 })
	if got := length(); got < 400 {
		t.Errorf("entries: got %d, want at least the 400 unread", got)
	}
	settle(t, b.Ack(t.Context(), redistest.Take(t, b, 400)...))
	redistest.Eventually(t, "the rest is trimmed but for the last node", func() bool { return length() <= 100 })

	// The counts hold over trimming, and the end is known over deletions.
	q := backend.Queue(t, server, "trim", "group=audit").(queue.Backlogger)
	check := func(want queue.Backlog) {
		t.Helper()
		if got, err := q.Backlog(t.Context()); err != nil || got != want {
			t.Errorf("backlog: got %+v, %v, want %+v", got, err, want)
		}
	}
	check(queue.Backlog{Dead: -1})
	publish(t, p, "x", "y", "z")
	check(queue.Backlog{Ready: 3, Dead: -1})
	last := look.XRevRangeN(t.Context(), stream("trim"), "+", "-", 2).Val()
	if err := look.XDel(t.Context(), stream("trim"), last[1].ID).Err(); err != nil {
		t.Fatal(err)
	}
	rest := redistest.Take(t, b, 2)
	check(queue.Backlog{InFlight: 2, Dead: -1})
	settle(t, b.Ack(t.Context(), rest...))
	check(queue.Backlog{Dead: -1})
}

func TestANewGroupBeginsWithTheOldestEntry(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	_, p := redistest.Both(t, backend.Queue(t, server, "newgroup", ""))
	publish(t, p, "1", "2")
	c, _ := redistest.Both(t, backend.Queue(t, server, "newgroup", "group=later"))
	if ds := redistest.Take(t, c, 2); ds[0].ID != "1" || ds[1].ID != "2" {
		t.Errorf("got %s, %s, want 1, 2", ds[0].ID, ds[1].ID)
	}
}
