package broker_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
)

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestBrokerAnswersAfterEveryFault(t *testing.T) {
	for _, c := range []struct {
		kind     string
		version  string
		settings map[string]string // a part of them
	}{
		{"redis", "7.", map[string]string{"appendonly": "yes", "appendfsync": "everysec", "save": "", "maxmemory": "0", "maxmemory-policy": "noeviction", "no-appendfsync-on-rewrite": "no"}},
		{"rabbitmq", "3.", map[string]string{"product": "RabbitMQ"}},
		{"kafka", "4.3.1", map[string]string{"brokers": "1", "min.insync.replicas": "1", "default.replication.factor": "1", "log.flush.interval.messages": "9223372036854775807",
			"log.flush.interval.ms": "", "unclean.leader.election.enable": "false", "group.min.session.timeout.ms": "1000", "auto.create.topics.enable": "false"}},
		{"nats", "2.", map[string]string{"sync_interval": "2m0s", "sync_always": "false", "max_payload": "1048576"}},
		{"postgres", "1", map[string]string{"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "wal_sync_method": "fdatasync", "track_commit_timestamp": "on"}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			ctx := within(t, 5*time.Minute)
			b := brokertest.Start(t, c.kind, "")
			v, err := b.Version(ctx)
			if err != nil || !strings.HasPrefix(v, c.version) {
				t.Errorf("got version %q, %v, want %s…", v, err, c.version)
			}
			s, err := b.Settings(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range c.settings {
				if got, ok := s[name]; !ok || got != want {
					t.Errorf("got %s=%q, want %q", name, got, want)
				}
			}

			url := b.URL()
			if err := b.Kill(ctx); err != nil {
				t.Fatal(err)
			}
			if err := b.Ready(ctx); err == nil {
				t.Error("got an answer from a killed broker, want an error")
			}
			if err := b.Kill(ctx); err != nil {
				t.Errorf("got %v from a second Kill, want nil: it is dead", err)
			}
			if err := b.Restart(ctx); err != nil {
				t.Fatal(err)
			}
			if err := b.Pause(ctx); err != nil {
				t.Fatal(err)
			}
			short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			if err := b.Ready(short); err == nil {
				t.Error("got an answer from a paused broker, want none")
			}
			cancel()
			if err := b.Resume(ctx); err != nil {
				t.Fatal(err)
			}
			if err := b.Ready(ctx); err != nil {
				t.Errorf("got %v after Resume, want an answer", err)
			}
			if b.URL() != url {
				t.Errorf("got URL %s after a restart, want the same as before, %s", b.URL(), url)
			}
		})
	}
}

func TestPersistenceIsWhatTheSettingSays(t *testing.T) {
	for _, c := range []struct{ setting, want string }{
		{"no-persistence", ""},
		{"aof-everysec", "kept"},
		{"aof-always", "kept"},
	} {
		t.Run(c.setting, func(t *testing.T) {
			ctx := within(t, time.Minute)
			b := brokertest.Start(t, "redis", c.setting)
			o, err := redis.ParseURL(b.URL())
			if err != nil {
				t.Fatal(err)
			}
			client := redis.NewClient(o)
			defer client.Close()
			if err := client.Set(ctx, "word", "kept", 0).Err(); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(b.Kill(ctx), b.Restart(ctx)); err != nil {
				t.Fatal(err)
			}
			got, err := client.Get(ctx, "word").Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("got %q after a kill and restart, want %q", got, c.want)
			}
		})
	}
}

func TestStopIsFinalAndMayBeRepeated(t *testing.T) {
	brokertest.Start(t, "redis", "") // skips where there is no Redis
	ctx := within(t, time.Minute)
	b, err := broker.Start(ctx, broker.Options{Kind: "redis"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Restart(ctx); err == nil {
		t.Error("got nil from Restart after Stop, want an error")
	}
}

func TestStartEndsWithItsContextAndLeavesNothing(t *testing.T) {
	brokertest.Start(t, "redis", "")
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := broker.Start(ctx, broker.Options{Kind: "redis"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("got %v left, want nothing", left)
	}
}

func TestExternalBrokerIsUsedAndNeverHarmed(t *testing.T) {
	ctx := within(t, time.Minute)
	ours := brokertest.Start(t, "redis", "")
	b, err := broker.External("redis", ours.URL())
	if err != nil {
		t.Fatal(err)
	}
	if v, err := b.Version(ctx); err != nil || v == "" {
		t.Errorf("got version %q, %v, want it asked from the broker", v, err)
	}
	if err := b.Ready(ctx); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"kill": b.Kill(ctx), "terminate": b.Terminate(ctx), "restart": b.Restart(ctx), "pause": b.Pause(ctx), "resume": b.Resume(ctx), "stop": b.Stop(),
	} {
		if !errors.Is(err, broker.ErrExternal) {
			t.Errorf("%s: got %v, want ErrExternal", name, err)
		}
	}
	if err := ours.Ready(ctx); err != nil {
		t.Errorf("got %v, want the broker unharmed", err)
	}
}

func TestBadInputIsNamed(t *testing.T) {
	ctx := within(t, time.Minute)
	start := func(o broker.Options) error { _, err := broker.Start(ctx, o); return err }
	external := func(kind, url string) error { _, err := broker.External(kind, url); return err }
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"an unknown kind lists the known", start(broker.Options{Kind: "nsq"}), "redis, rabbitmq, kafka, postgres"},
		{"an unknown setting lists the known", start(broker.Options{Kind: "redis", Setting: "mixed"}), "aof-always, aof-everysec, aof-no, cluster, no-persistence, rdb"},
		{"an external broker needs a host", external("kafka", "kafka:9092"), "names no host"},
		{"a URL that does not parse", external("redis", "redis://:secret@[/0"), "URL of the redis broker"},
		{"up knows backends and brokers", broker.Up(ctx, []string{"memory"}, nil, io.Discard), "redis, rabbitmq, kafka, postgres"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", c.err, c.want)
			}
			if c.err != nil && strings.Contains(c.err.Error(), "secret") {
				t.Errorf("got %v, want no password in it", c.err)
			}
		})
	}
}

func TestQueueURL(t *testing.T) {
	for _, c := range []struct{ kind, url, scheme, query, want string }{
		{"redis", "redis://127.0.0.1:7000/0", "redis+streams", "claim=2s", "redis+streams://127.0.0.1:7000/0?claim=2s&queue=q1"},
		{"redis", "redis://u:p@127.0.0.1:7000/3", "redis+list", "", "redis+list://u:p@127.0.0.1:7000/3?queue=q1"},
		{"nats", "nats://127.0.0.1:7000", "nats", "ack-wait=2s", "nats://127.0.0.1:7000?ack-wait=2s&queue=q1"},
		{"postgres", "postgres://lab@127.0.0.1:7000/lab?sslmode=disable", "postgres", "", "postgres://lab@127.0.0.1:7000/lab?queue=q1&sslmode=disable"},
		{"rabbitmq", "amqp://guest:guest@127.0.0.1:7000/", "amqp", "type=quorum", "amqp://guest:guest@127.0.0.1:7000/?queue=q1&type=quorum"},
		{"kafka", "kafka://127.0.0.1:7000,127.0.0.1:7001", "kafka", "acks=all", "kafka://127.0.0.1:7000,127.0.0.1:7001/q1?acks=all"},
		{"kafka", "kafka://127.0.0.1:7000?partitions=4", "kafka", "", "kafka://127.0.0.1:7000/q1?partitions=4"},
		{"kafka", "kafka://127.0.0.1:7000?partitions=4", "kafka", "partitions=2", "kafka://127.0.0.1:7000/q1?partitions=2"},
	} {
		b, err := broker.External(c.kind, c.url)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, b.QueueURL(c.scheme, "q1", c.query)); diff != "" {
			t.Errorf("QueueURL of %s (-want +got):\n%s", c.url, diff)
		}
	}
}

func TestUpPrintsWhatToPasteAndTakesAllDown(t *testing.T) {
	brokertest.Start(t, "redis", "")
	brokertest.Start(t, "postgres", "")
	dir := commonTemp(t)
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithCancel(within(t, 3*time.Minute))
	defer cancel()
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- broker.Up(ctx, []string{"redis-list", "redis-streams", "postgres"}, func(kind string) []string {
			return map[string][]string{"redis": {"redis+list", "redis+streams"}, "postgres": {"postgres"}}[kind]
		}, w)
		w.Close()
	}()
	var said strings.Builder
	for s := bufio.NewScanner(r); s.Scan(); {
		said.WriteString(s.Text() + "\n")
		if strings.Contains(s.Text(), "Ctrl-C") {
			cancel()
		}
	}
	if err := <-done; err != nil {
		t.Errorf("got %v, want nil for a wanted stop", err)
	}
	for _, want := range []string{"--queue 'redis+streams://127.0.0.1:", "--redis 'redis://127.0.0.1:", "--db 'postgres://lab@127.0.0.1:"} {
		if got := strings.Count(said.String(), want); got != 1 {
			t.Errorf("got %q %d times, want it once, in:\n%s", want, got, said.String())
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("got %v left, want nothing", left)
	}
}
