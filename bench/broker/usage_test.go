package broker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
)

// used is the usage of a broker that must be known.
func used(t *testing.T, ctx context.Context, b *broker.Broker) broker.Usage {
	t.Helper()
	u, err := b.Usage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !u.Known {
		brokertest.Lacks(t, "this broker runs in a container")
	}
	return u
}

// until works until the broker's usage is as wanted.
func until(t *testing.T, ctx context.Context, b *broker.Broker, what string, work func() error, ok func(broker.Usage) bool) broker.Usage {
	t.Helper()
	for {
		if err := work(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		u := used(t, ctx, b)
		if ok(u) {
			return u
		}
		if ctx.Err() != nil {
			t.Fatalf("got %+v, want %s", u, what)
		}
	}
}

func redisOf(t *testing.T, b *broker.Broker) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestUsageGrowsWithWork(t *testing.T) {
	mib := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		kind  string
		least int64 // bytes that its programs cannot do without
		work  func(*testing.T, context.Context, *broker.Broker) func() error
	}{
		{"redis", 1 << 20, func(t *testing.T, ctx context.Context, b *broker.Broker) func() error {
			client, n := redisOf(t, b), 0
			t.Cleanup(func() { client.FlushAll(context.Background()) })
			return func() error {
				n++
				return client.Set(ctx, fmt.Sprint("usage", n%8), mib, 0).Err()
			}
		}},
		{"rabbitmq", 30 << 20, func(t *testing.T, ctx context.Context, b *broker.Broker) func() error {
			conn, err := amqp.Dial(b.URL())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			ch, err := conn.Channel()
			if err != nil {
				t.Fatal(err)
			}
			if err := ch.Confirm(false); err != nil {
				t.Fatal(err)
			}
			if _, err := ch.QueueDeclare("usage", true, false, false, false, nil); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { ch.QueueDelete("usage", false, false, false) })
			return func() error {
				confirm, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", "usage", false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(mib)})
				if err != nil {
					return err
				}
				_, err = confirm.WaitContext(ctx)
				return err
			}
		}},
		{"kafka", 50 << 20, func(t *testing.T, ctx context.Context, b *broker.Broker) func() error {
			u, err := url.Parse(b.URL())
			if err != nil {
				t.Fatal(err)
			}
			transport := &kafka.Transport{}
			t.Cleanup(transport.CloseIdleConnections)
			client := &kafka.Client{Addr: kafka.TCP(u.Host), Transport: transport}
			r, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: "usage", NumPartitions: 1, ReplicationFactor: 1}}})
			if err == nil {
				err = r.Errors["usage"]
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				client.DeleteTopics(context.Background(), &kafka.DeleteTopicsRequest{Topics: []string{"usage"}})
			})
			return func() error {
				_, err := client.Produce(ctx, &kafka.ProduceRequest{Topic: "usage", RequiredAcks: kafka.RequireAll,
					Records: kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes([]byte(mib[:900_000]))})})
				if errors.Is(err, kafka.LeaderNotAvailable) || errors.Is(err, kafka.UnknownTopicOrPartition) {
					return nil // it was made a moment ago
				}
				return err
			}
		}},
		{"postgres", 5 << 20, func(t *testing.T, ctx context.Context, b *broker.Broker) func() error {
			conn, err := pgx.Connect(ctx, b.URL())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close(context.Background()) })
			if _, err := conn.Exec(ctx, "CREATE TABLE usage (n bigint)"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Exec(context.Background(), "DROP TABLE usage") })
			return func() error {
				_, err := conn.Exec(ctx, "INSERT INTO usage SELECT generate_series(1, 20000)")
				return err
			}
		}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			ctx := within(t, 3*time.Minute)
			b := brokertest.Start(t, c.kind, "")
			before := used(t, ctx, b)
			if before.MemoryBytes < c.least || before.DiskBytes <= 0 {
				t.Errorf("got %+v, want at least %d bytes of memory, and a directory", before, c.least)
			}
			after := until(t, ctx, b, "more CPU time, and more on disk", c.work(t, ctx, b), func(u broker.Usage) bool {
				return u.CPU >= before.CPU+50*time.Millisecond && u.DiskBytes >= before.DiskBytes+2<<20
			})
			t.Logf("before %+v, after %+v", before, after)
		})
	}
}

func TestUsageGoesOnThroughKillAndRestart(t *testing.T) {
	ctx := within(t, time.Minute)
	b := brokertest.Start(t, "redis", "aof-always")
	client := redisOf(t, b)
	block := bytes.Repeat([]byte("x"), 1<<20)
	work := func() error { return client.Set(ctx, "usage", block, 0).Err() }
	first := used(t, ctx, b)
	alive := until(t, ctx, b, "more CPU time", work, func(u broker.Usage) bool { return u.CPU >= first.CPU+100*time.Millisecond })
	if err := b.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	dead := used(t, ctx, b)
	if dead.CPU < alive.CPU {
		t.Errorf("got %v of CPU time after the kill and %v before, want it kept", dead.CPU, alive.CPU)
	}
	if dead.MemoryBytes != 0 {
		t.Errorf("got %d bytes of memory for a killed broker, want none", dead.MemoryBytes)
	}
	if dead.DiskBytes < int64(len(block)) {
		t.Errorf("got %d bytes on disk for a killed broker, want its data to be there", dead.DiskBytes)
	}
	if again := used(t, ctx, b); again.CPU != dead.CPU {
		t.Errorf("got %v and then %v of CPU time for a killed broker, want it to stand still", dead.CPU, again.CPU)
	}
	if err := b.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	back := until(t, ctx, b, "more CPU time than before the kill", work, func(u broker.Usage) bool { return u.CPU >= dead.CPU+50*time.Millisecond })
	if back.MemoryBytes < 1<<20 {
		t.Errorf("got %d bytes of memory after the restart, want those of a Redis", back.MemoryBytes)
	}
}

func TestUsageOfAPausedBrokerIsReadAllTheSame(t *testing.T) {
	ctx := within(t, time.Minute)
	b := brokertest.Start(t, "redis", "")
	used(t, ctx, b)
	if err := b.Pause(ctx); err != nil {
		t.Fatal(err)
	}
	defer b.Resume(ctx)
	if u := used(t, ctx, b); u.MemoryBytes < 1<<20 {
		t.Errorf("got %+v, want the memory that it holds", u)
	}
}

func TestUsageThatCannotBeSeenIsNotKnown(t *testing.T) {
	ctx := within(t, time.Minute)
	b, err := broker.External("redis", "redis://127.0.0.1:1/0")
	if err != nil {
		t.Fatal(err)
	}
	if u, err := b.Usage(ctx); err != nil || u != (broker.Usage{}) {
		t.Errorf("external: got %+v, %v, want nothing known, and no error", u, err)
	}
	withFakeDocker(t)
	b, err = broker.Start(ctx, broker.Options{Kind: "redis"})
	if err != nil {
		t.Fatal(err)
	}
	u, err := b.Usage(ctx)
	if err := errors.Join(err, b.Stop()); err != nil || u != (broker.Usage{}) {
		t.Errorf("container: got %+v, %v, want nothing known, and no error", u, err)
	}
}

func TestUsageEndsWithTheBroker(t *testing.T) {
	used(t, within(t, time.Minute), brokertest.Start(t, "redis", "")) // skips where it is not known
	ctx := within(t, time.Minute)
	b, err := broker.Start(ctx, broker.Options{Kind: "redis"})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := b.Usage(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v with a context that has ended, want context.Canceled", err)
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	if u, err := b.Usage(ctx); err == nil {
		t.Errorf("got %+v from a broker that was stopped, want an error", u)
	}
}
