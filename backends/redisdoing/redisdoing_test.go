package redisdoing_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/redistest"
	"queuelab/backends/redisdoing"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
	"queuelab/queue/queuetest"
)

func TestMain(m *testing.M) { backend.Main(m) }

var backend = redistest.Backend{Scheme: "redis+doing", Open: redisdoing.Open}

// setting is that of all but the suite, which kills its servers.
const setting = "aof-always"

func TestConformance(t *testing.T) {
	t.Parallel()
	for query, setting := range map[string]string{"pop=tutorial": "no-persistence", "pop=atomic&batch=10": "aof-everysec"} {
		t.Run(query, func(t *testing.T) {
			t.Parallel() // each has a server of its own
			queuetest.Run(t, backend.Harness(brokertest.Start(t, "redis", setting), "claim=1s&"+query, 2*time.Second))
		})
	}
}

func publish(t *testing.T, q queue.Queue, ids ...string) {
	t.Helper()
	p, err := q.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if err := p.Publish(t.Context(), queue.Message{ID: id, Key: "k", Body: []byte("b")}); err != nil {
			t.Fatalf("publish %s: %v", id, err)
		}
	}
}

// counts are what is on the list and in the hash.
func counts(t *testing.T, c *redis.Client, name string) [2]int64 {
	t.Helper()
	key := "doing:{" + name + "}"
	return [2]int64{c.LLen(t.Context(), key).Val(), c.HLen(t.Context(), key+":doing").Val()}
}

// next is the message that comes within the time, and its attempt; "" for none.
func next(t *testing.T, q queue.Queue, within time.Duration) (id string, attempt int) {
	t.Helper()
	c, err := q.Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	ds, err := c.Receive(ctx, 1)
	if errors.Is(err, context.DeadlineExceeded) {
		return "", 0
	}
	if err == nil {
		err = c.Ack(t.Context(), ds...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ds[0].ID, ds[0].Attempt
}

func TestAConsumerKilledInTheGapLosesOneAndTheScriptNone(t *testing.T) {
	t.Parallel()
	t.Run("tutorial", func(t *testing.T) {
		t.Parallel()
		server := brokertest.Start(t, "redis", setting)
		look := redistest.Client(t, server)
		proxy := redistest.NewProxy(t, server)
		q := backend.Queue(t, server, "gap", "claim=1s")
		v := backend.Victim(t, proxy.URL(backend, "gap", "claim=1s"))
		held, _ := proxy.Stopover("hset") // and never released
		publish(t, q, "1")
		select { // popped, and not written down
		case <-held:
		case <-time.After(10 * time.Second):
			t.Fatal("the victim writes nothing down")
		}
		v.Kill()
		if got := counts(t, look, "gap"); got != [2]int64{} {
			t.Errorf("pending and doing: got %v, want none: the message is nowhere", got)
		}
		if id, _ := next(t, q, 2500*time.Millisecond); id != "" {
			t.Errorf("got message %s, want that it is lost", id)
		}
		if !q.Capabilities().PopGap || !q.Capabilities().Lossy() {
			t.Errorf("capabilities: got %+v, want PopGap, and so lossy", q.Capabilities())
		}
	})
	t.Run("atomic", func(t *testing.T) {
		t.Parallel()
		server := brokertest.Start(t, "redis", setting)
		look := redistest.Client(t, server)
		proxy := redistest.NewProxy(t, server)
		q := backend.Queue(t, server, "nogap", "claim=1s&pop=atomic")
		v := backend.Victim(t, proxy.URL(backend, "nogap", "claim=1s&pop=atomic"))
		proxy.LoseReply(fmt.Sprintf("-%d-", v.Pid())) // only what takes tells its worker
		publish(t, q, "1")
		redistest.Eventually(t, "the message is taken and nobody was told", func() bool { return proxy.Lost() == 1 && counts(t, look, "nogap") == [2]int64{0, 1} })
		v.Kill()
		if id, attempt := next(t, q, 5*time.Second); id != "1" || attempt != 2 {
			t.Errorf("got message %q at attempt %d, want 1 at 2", id, attempt)
		}
		if q.Capabilities().PopGap || q.Capabilities().Lossy() {
			t.Errorf("capabilities: got %+v, want no PopGap, and so not lossy", q.Capabilities())
		}
	})
}

func TestWhatADeadConsumerHeldIsRolledBack(t *testing.T) {
	t.Parallel()
	for _, pop := range []string{"tutorial", "atomic"} {
		t.Run(pop, func(t *testing.T) {
			t.Parallel()
			server := brokertest.Start(t, "redis", setting)
			look := redistest.Client(t, server)
			query, name := "claim=1s&pop="+pop, "dead-"+pop
			q := backend.Queue(t, server, name, query)
			v := backend.Victim(t, server.QueueURL(backend.Scheme, name, query))
			publish(t, q, "1", "2", "3")
			v.Receives(t, 3)
			v.Kill()
			if got := counts(t, look, name); got != [2]int64{0, 3} {
				t.Errorf("pending and doing: got %v, want [0 3]", got)
			}
			seen := map[string]bool{}
			for range 3 {
				id, _ := next(t, q, 5*time.Second)
				seen[id] = true
			}
			if !seen["1"] || !seen["2"] || !seen["3"] {
				t.Errorf("came again: got %v, want 1, 2 and 3", seen)
			}
			if got := counts(t, look, name); got != [2]int64{} {
				t.Errorf("pending and doing: got %v, want none", got)
			}
		})
	}
}

func TestALateAckTakesAwayTheNewWorkersEntryUnlessItIsAtomic(t *testing.T) {
	t.Parallel()
	for pop, left := range map[string]int64{"tutorial": 0, "atomic": 1} {
		t.Run(pop, func(t *testing.T) {
			t.Parallel()
			server := brokertest.Start(t, "redis", setting)
			look := redistest.Client(t, server)
			name := "late-" + pop
			q := backend.Queue(t, server, name, "claim=1s&pop="+pop)
			slow, err := q.Consumer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			publish(t, q, "1")
			old := redistest.Take(t, slow, 1)
			other, err := q.Consumer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			redistest.Take(t, other, 1) // the slow one lives, and is robbed
			err = slow.Ack(t.Context(), old...)
			if got := errors.Is(err, queue.ErrLeaseLost); got != (pop == "atomic") {
				t.Errorf("late ack: got %v", err)
			}
			if got := counts(t, look, name); got[1] != left {
				t.Errorf("entries of the message that the other is working on: got %d, want %d", got[1], left)
			}
		})
	}
}

func TestAFailedWriteLosesNothingWhileTheProcessLives(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t, "redis", setting)
	proxy := redistest.NewProxy(t, server)
	q := backend.At(t, proxy.URL(backend, "write", ""))
	c, err := q.Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	publish(t, q, "1", "2")
	proxy.LoseReply("hset")
	if ds, err := c.Receive(t.Context(), 1); err == nil {
		t.Fatalf("receive whose HSET has no answer: got %d deliveries, want an error", len(ds))
	}
	if ds := append(redistest.Take(t, c, 1), redistest.Take(t, c, 1)...); ds[0].ID != "1" || ds[1].ID != "2" {
		t.Errorf("messages: got %s and %s, want 1 and 2", ds[0].ID, ds[1].ID)
	}
}

func TestAForeignEntryIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, pop := range []string{"tutorial", "atomic"} {
		server := brokertest.Start(t, "redis", setting)
		look := redistest.Client(t, server)
		name := "foreign-" + pop
		key := "doing:{" + name + "}:doing"
		for field, value := range map[string]string{"a": "hello", "b": "12", "c": "12 worker", "d": ""} {
			if err := look.HSet(t.Context(), key, field, value).Err(); err != nil {
				t.Fatal(err)
			}
		}
		redistest.Both(t, backend.Queue(t, server, name, "pop="+pop)) // which looks through the hash
		if got := counts(t, look, name); got != [2]int64{0, 4} {
			t.Errorf("%s: pending and doing: got %v, want [0 4]", pop, got)
		}
	}
}

func TestATakeThatTheClientLibrarySendsTwiceLosesNothing(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	proxy := redistest.NewProxy(t, server)
	c, _ := redistest.Both(t, backend.At(t, proxy.URL(backend, "twice", "pop=atomic&batch=1&retries=1&claim=1h")))
	_, p := redistest.Both(t, backend.Queue(t, server, "twice", "pop=atomic"))
	publish := func(ids ...string) {
		for _, id := range ids {
			if err := p.Publish(t.Context(), queue.Message{ID: id, Key: "k"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	publish("0") // with it the server gets the script
	all := redistest.Take(t, c, 1)
	publish("1", "2")
	proxy.LoseReply("twice}:doing") // of the script alone
	all = append(all, redistest.Take(t, c, 2)...)
	if proxy.Lost() != 1 {
		t.Fatalf("lost %d replies, want 1", proxy.Lost())
	}
	if err := c.Ack(t.Context(), all...); err != nil {
		t.Errorf("ack: %v", err)
	}
	if all[1].ID != "1" || all[2].ID != "2" {
		t.Errorf("got %s and %s, want 1 and 2", all[1].ID, all[2].ID)
	}
}
