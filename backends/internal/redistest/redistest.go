// Package redistest is what the tests of the Redis queues have in common: the
// suite's harness over a real server, and a proxy that breaks connections.
package redistest

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
	"queuelab/queue/queuetest"
)

// Backend is a queue package under test.
type Backend struct {
	Scheme string
	Open   func(ctx context.Context, u *url.URL) (queue.Queue, error)
}

// Main is the body of a TestMain. The suite mostly waits, so more of its cases
// run at a time than there are processors.
func Main(m *testing.M) {
	if err := flag.Set("test.parallel", "16"); err != nil { // before the command line, which wins
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	brokertest.Main(m)
}

// Try opens the queue of a URL.
func (b Backend) Try(raw string) (queue.Queue, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	return b.Open(ctx, u)
}

// Queue opens a queue on a server, and deletes and closes it at the test's end.
func (b Backend) Queue(t testing.TB, server *broker.Broker, name, query string) queue.Queue {
	t.Helper()
	return b.At(t, server.QueueURL(b.Scheme, name, query))
}

// At is Queue for a whole URL.
func (b Backend) At(t testing.TB, raw string) queue.Queue {
	t.Helper()
	q, err := b.Try(raw)
	if err != nil {
		t.Fatalf("open %s: %v", raw, err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Logf("close the queue: %v", err)
		}
	})
	return q
}

// Harness is the suite's view of a server; query goes to every queue.
func (b Backend) Harness(server *broker.Broker, query string, redelivery time.Duration) queuetest.Harness {
	at := func(name string, params []string) string {
		return server.QueueURL(b.Scheme, name, strings.Join(append([]string{query}, params...), "&"))
	}
	return queuetest.Harness{
		Open: func(t testing.TB, name string, params ...string) queue.Queue {
			t.Helper()
			q, err := b.Try(at(name, params))
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			return q
		},
		OpenErr: func(params ...string) error {
			q, err := b.Try(at("wrong", params))
			if err != nil {
				return err
			}
			return q.Close()
		},
		Crash:  func(t testing.TB) { Crash(t, server) },
		Freeze: func(t testing.TB) func() { return Freeze(t, server) },
		Script: func(t testing.TB, how queue.ScriptEnqueue, args ...any) error {
			const script = "return redis.call('%s', KEYS[1], unpack(ARGV))"
			return Client(t, server).Eval(t.Context(), fmt.Sprintf(script, how.Command), []string{how.Key}, args...).Err()
		},
		Redelivery: redelivery,
		Arrival:    4 * time.Second,
	}
}

// Crash kills the server and starts it again. It first waits until no fsync is
// under way: with appendfsync everysec a slow disk makes Redis answer before it
// writes, up to two seconds, and what the suite asks is what a healthy disk keeps.
func Crash(t testing.TB, server *broker.Broker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c := Client(t, server)
	Eventually(t, "the append-only file is written", func() bool {
		info, err := c.Info(ctx, "persistence").Result()
		if err != nil {
			t.Fatalf("info: %v", err)
		}
		return !strings.Contains(info, "aof_enabled:1") ||
			strings.Contains(info, "aof_pending_bio_fsync:0") && strings.Contains(info, "aof_buffer_length:0")
	})
	if err := server.Kill(ctx); err != nil {
		t.Fatalf("kill: %v", err)
	}
	if err := server.Restart(ctx); err != nil {
		t.Fatalf("restart: %v", err)
	}
}

// Freeze stops the server without killing it.
func Freeze(t testing.TB, server *broker.Broker) (thaw func()) {
	t.Helper()
	if err := server.Pause(context.Background()); err != nil {
		t.Fatalf("pause: %v", err)
	}
	return func() {
		if err := server.Resume(context.Background()); err != nil {
			t.Fatalf("resume: %v", err)
		}
	}
}

// Client is a plain client for a look behind the queue.
func Client(t testing.TB, server *broker.Broker) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	o.MaxRetries = -1
	c := redis.NewClient(o)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close the client: %v", err)
		}
	})
	return c
}

// Eventually waits until a fact holds, which must be within ten seconds.
func Eventually(t testing.TB, fact string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not become true that %s", fact)
		}
	}
}

// Both opens a consumer and then a publisher.
func Both(t testing.TB, q queue.Queue) (queue.Consumer, queue.Publisher) {
	t.Helper()
	c, err := q.Consumer(t.Context())
	if err != nil {
		t.Fatalf("consumer: %v", err)
	}
	p, err := q.Publisher(t.Context())
	if err != nil {
		t.Fatalf("publisher: %v", err)
	}
	return c, p
}

// Take receives n deliveries, and fails on any error.
func Take(t testing.TB, c queue.Consumer, n int) []*queue.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var all []*queue.Delivery
	for len(all) < n {
		ds, err := c.Receive(ctx, n-len(all))
		if err != nil {
			t.Fatalf("received %d of %d, then: %v", len(all), n, err)
		}
		all = append(all, ds...)
	}
	return all
}

// Taking is Take in another goroutine; what it returns gets them all, or, after an
// error, what came before.
func Taking(t testing.TB, c queue.Consumer, n int) <-chan []*queue.Delivery {
	came := make(chan []*queue.Delivery, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		var all []*queue.Delivery
		for len(all) < n {
			ds, err := c.Receive(ctx, n-len(all))
			if err != nil {
				t.Errorf("received %d of %d, then: %v", len(all), n, err)
				break
			}
			all = append(all, ds...)
		}
		came <- all
	}()
	return came
}
