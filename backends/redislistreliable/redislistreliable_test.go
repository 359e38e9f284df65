package redislistreliable_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/redistest"
	"queuelab/backends/redislistreliable"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
	"queuelab/queue/queuetest"
)

func TestMain(m *testing.M) { backend.Main(m) }

var backend = redistest.Backend{Scheme: "redis+list-reliable", Open: redislistreliable.Open}

// setting is that of all but the suite, which kills its server.
const setting = "no-persistence"

func TestConformance(t *testing.T) {
	t.Parallel() // on a server of its own
	h := backend.Harness(brokertest.Start(t, "redis", "aof-everysec"), "claim=1s", 1500*time.Millisecond)
	h.Arrival = 3 * time.Second
	queuetest.Run(t, h)
}

func key(name string) string { return "list-reliable:{" + name + "}" }

func publish(t *testing.T, p queue.Publisher, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := p.Publish(t.Context(), queue.Message{ID: id, Key: "k", Body: []byte("b")}); err != nil {
			t.Fatalf("publish %s: %v", id, err)
		}
	}
}

// seen are the ids and attempts of deliveries.
func seen(ds []*queue.Delivery) (ids []string, attempts []int) {
	for _, d := range ds {
		ids, attempts = append(ids, d.ID), append(attempts, d.Attempt)
	}
	return ids, attempts
}

// held are the processing lists that are there, by their lengths.
func held(t *testing.T, c *redis.Client, name string) []int64 {
	t.Helper()
	keys, err := c.Keys(t.Context(), "list-reliable:{"+name+"}:processing:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	var lengths []int64
	for _, k := range keys {
		lengths = append(lengths, c.LLen(t.Context(), k).Val())
	}
	return lengths
}

func TestWhatADeadConsumerHeldIsGivenBackInOrderAndCounted(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t, "redis", setting)
	look := redistest.Client(t, server)
	q := backend.Queue(t, server, "dead", "claim=1s")
	v := backend.Victim(t, server.QueueURL(backend.Scheme, "dead", "claim=1s"))
	p, err := q.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	publish(t, p, "1", "2", "3")
	v.Receives(t, 3)
	publish(t, p, "4") // which the victim may have, too
	v.Kill()

	c, _ := redistest.Both(t, q)
	var all []*queue.Delivery
	for len(all) < 4 {
		all = append(all, redistest.Take(t, c, 1)...)
	}
	first := all
	if all[0].ID == "4" { // it was never the victim's
		first = slices.Concat(all[1:], all[:1])
	}
	ids, attempts := seen(first[:3])
	if diff := cmp.Diff([]string{"1", "2", "3"}, ids); diff != "" {
		t.Errorf("what came again is not in its order (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{2, 2, 2}, attempts); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if err := c.Ack(t.Context(), all...); err != nil {
		t.Errorf("ack: %v", err)
	}
	if got := held(t, look, "dead"); len(got) > 0 {
		t.Errorf("messages on processing lists: got %v, want none", got)
	}
}

func TestWhatArrivesUnderADeadNameIsGivenBack(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t, "redis", setting)
	look := redistest.Client(t, server)
	q := backend.Queue(t, server, "late", "claim=1s")
	gone, p := redistest.Both(t, q)
	names := look.ZRange(t.Context(), key("late")+":names", 0, -1).Val()
	if len(names) != 1 {
		t.Fatalf("names: got %v, want one", names)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	// As a BLMOVE does that was on its way when its consumer went.
	publish(t, p, "1")
	if err := look.LMove(t.Context(), key("late"), key("late")+":processing:"+names[0], "right", "left").Err(); err != nil {
		t.Fatal(err)
	}
	c, _ := redistest.Both(t, q)
	if ids, attempts := seen(redistest.Take(t, c, 1)); ids[0] != "1" || attempts[0] != 2 {
		t.Errorf("got message %s at attempt %d, want 1 at 2", ids[0], attempts[0])
	}
}

func TestADeadNameIsForgottenInTheEnd(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t, "redis", setting)
	look := redistest.Client(t, server)
	names := key("names") + ":names"
	for name, age := range map[string]time.Duration{"old": 61 * time.Minute, "recent": 59 * time.Minute} {
		at := time.Now().Add(-age).UnixMilli()
		if err := look.ZAdd(t.Context(), names, redis.Z{Score: float64(at), Member: name}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	redistest.Both(t, backend.Queue(t, server, "names", "claim=1s"))
	left := look.ZRange(t.Context(), names, 0, -1).Val()
	if slices.Contains(left, "old") || !slices.Contains(left, "recent") || len(left) != 2 {
		t.Errorf("names: got %v, want the recent one and the consumer's", left)
	}
}

func TestALostReplyToATakeIsFoundOnTheOwnList(t *testing.T) {
	for _, way := range []struct {
		name, text string
		max        int
	}{{"blmove", "blmove", 1}, {"script", ":processing:", 10}} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			server := brokertest.Start(t, "redis", setting)
			proxy := redistest.NewProxy(t, server)
			name := "lost-" + way.name
			c, _ := redistest.Both(t, backend.At(t, proxy.URL(backend, name, "claim=1h")))
			_, p := redistest.Both(t, backend.Queue(t, server, name, ""))
			publish(t, p, "0")
			held := redistest.Take(t, c, 1) // it is on the list, too, and known
			publish(t, p, "1", "2")
			proxy.LoseReply(way.text)
			if ds, err := c.Receive(t.Context(), way.max); err == nil {
				t.Fatalf("receive whose reply is lost: got %d deliveries, want an error", len(ds))
			}
			ids, attempts := seen(redistest.Take(t, c, 2))
			if diff := cmp.Diff([]string{"1", "2"}, ids); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]int{1, 1}, attempts); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
			nothing(t, c, 100*time.Millisecond)
			if err := c.Ack(t.Context(), held...); err != nil {
				t.Errorf("ack: %v", err)
			}
		})
	}
}

func TestWhatNobodyWasToldOfComesWithinALease(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t, "redis", setting)
	look := redistest.Client(t, server)
	c, p := redistest.Both(t, backend.Queue(t, server, "late-take", "claim=1s"))
	publish(t, p, "0")
	held := redistest.Take(t, c, 1)
	publish(t, p, "1")
	// As a take does that was held back by the network until after the look for it.
	name := look.ZRange(t.Context(), key("late-take")+":names", 0, -1).Val()[0]
	if err := look.LMove(t.Context(), key("late-take"), key("late-take")+":processing:"+name, "right", "left").Err(); err != nil {
		t.Fatal(err)
	}
	ds := redistest.Take(t, c, 1)
	if ds[0].ID != "1" {
		t.Errorf("got message %s, want 1", ds[0].ID)
	}
	if err := c.Ack(t.Context(), append(held, ds...)...); err != nil {
		t.Errorf("ack: %v", err)
	}
}

func nothing(t *testing.T, c queue.Consumer, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if ds, err := c.Receive(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
		ids, _ := seen(ds)
		t.Errorf("got messages %v and %v, want none", ids, err)
	}
}

func TestALateSettleIsErrLeaseLost(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t, "redis", setting)
	look := redistest.Client(t, server)
	proxy := redistest.NewProxy(t, server)
	old, p := redistest.Both(t, backend.At(t, proxy.URL(backend, "zombie", "claim=1s&timeout=10s")))
	publish(t, p, "1", "2")
	before := redistest.Take(t, old, 2)
	proxy.Silence(true)
	t.Cleanup(func() { proxy.Silence(false) }) // before its queue is closed

	c, _ := redistest.Both(t, backend.Queue(t, server, "zombie", "claim=1s"))
	after := redistest.Take(t, c, 2)
	proxy.Silence(false)
	if err := old.Ack(t.Context(), before[0]); !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("late ack: got %v, want ErrLeaseLost", err)
	}
	if err := old.Nack(t.Context(), before[1]); !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("late nack: got %v, want ErrLeaseLost", err)
	}
	if got := held(t, look, "zombie"); len(got) != 1 || got[0] != 2 {
		t.Errorf("messages on processing lists after the late settles: got %v, want 2 on one", got)
	}
	if err := c.Ack(t.Context(), after...); err != nil {
		t.Errorf("ack by the new owner: %v", err)
	}
}

func TestASlowConsumerThatIsAliveIsNotRobbed(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t, "redis", setting)
	q := backend.Queue(t, server, "slow", "claim=1s")
	slow, p := redistest.Both(t, q)
	publish(t, p, "1")
	ds := redistest.Take(t, slow, 1)
	other, _ := redistest.Both(t, q)
	nothing(t, other, 2500*time.Millisecond)
	if err := slow.Ack(t.Context(), ds...); err != nil {
		t.Errorf("ack after two leases: %v", err)
	}
}

func TestAForeignValueIsDroppedAndTold(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t, "redis", setting)
	look := redistest.Client(t, server)
	c, p := redistest.Both(t, backend.Queue(t, server, "foreign", ""))
	if err := look.LPush(t.Context(), key("foreign"), "hello", "7:hello").Err(); err != nil {
		t.Fatal(err)
	}
	publish(t, p, "1")
	ids, failed := []string{}, 0
	for len(ids) < 1 || failed < 1 {
		ds, err := c.Receive(t.Context(), 10)
		if err != nil {
			failed++
		}
		more, _ := seen(ds)
		ids = append(ids, more...)
	}
	if got := held(t, look, "foreign"); !cmp.Equal(ids, []string{"1"}) || failed != 1 || len(got) != 1 || got[0] != 1 {
		t.Errorf("got messages %v, %d errors and %v held, want [1], 1 and [1]", ids, failed, got)
	}
}
