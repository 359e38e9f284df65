package redislist_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"queuelab/backends/redislist"
	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
	"queuelab/queue/queuetest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

func open(t testing.TB, raw string) (queue.Queue, error) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	return redislist.Open(ctx, u)
}

func mustOpen(t testing.TB, raw string) queue.Queue {
	t.Helper()
	q, err := open(t, raw)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return q
}

func TestConformance(t *testing.T) {
	for _, setting := range []string{"no-persistence", "aof-everysec", "aof-always"} {
		t.Run(setting, func(t *testing.T) {
			queuetest.Run(t, harness(brokertest.Start(t, "redis", setting), "timeout=1s"))
		})
	}
	t.Run("batch", func(t *testing.T) {
		queuetest.Run(t, harness(brokertest.Start(t, "redis", "no-persistence"), "timeout=1s&batch=100"))
	})
}

func harness(b *broker.Broker, query string) queuetest.Harness {
	at := func(name string, params []string) string {
		q := query
		for _, p := range params {
			q += "&" + p
		}
		return b.QueueURL("redis+list", name, q)
	}
	return queuetest.Harness{
		Open: func(t testing.TB, name string, params ...string) queue.Queue {
			return mustOpen(t, at(name, params))
		},
		OpenErr: func(params ...string) error {
			u, err := url.Parse(at("wrong", params))
			if err != nil {
				return err
			}
			q, err := redislist.Open(context.Background(), u)
			if err != nil {
				return err
			}
			return q.Close()
		},
		Crash: func(t testing.TB) {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			if err := b.Kill(ctx); err != nil {
				t.Fatalf("kill: %v", err)
			}
			if err := b.Restart(ctx); err != nil {
				t.Fatalf("restart: %v", err)
			}
		},
		Freeze: func(t testing.TB) func() {
			if err := b.Pause(context.Background()); err != nil {
				t.Fatalf("pause: %v", err)
			}
			return func() {
				if err := b.Resume(context.Background()); err != nil {
					t.Fatalf("resume: %v", err)
				}
			}
		},
		Redelivery: time.Second,
	}
}
