package broker_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
)

func TestABrokerDiesOfItsMemoryAndComesBackWithoutALimit(t *testing.T) {
	ctx := within(t, time.Minute)
	brokertest.Need(t, "redis")
	b, err := broker.Start(ctx, broker.Options{Kind: "redis", Setting: "no-persistence"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	used(t, ctx, b) // skips where it runs in a container
	// fill writes 40 MB at most, and says when Redis took no more.
	fill := func() error {
		o, err := redis.ParseURL(b.URL())
		if err != nil {
			t.Fatal(err)
		}
		o.MaxRetries, o.DialerRetries = -1, 1
		c := redis.NewClient(o)
		defer c.Close()
		for range 40 {
			if err := c.LPush(ctx, "heavy", strings.Repeat("x", 1<<20)).Err(); err != nil {
				return err
			}
		}
		return nil
	}
	if err := b.LimitMemory(ctx, 8<<20); err != nil {
		t.Fatal(err)
	}
	if err := fill(); err == nil {
		t.Error("40 MB were taken, want Redis to die at 8")
	}
	if how, err := b.AwaitEnd(ctx); err != nil || how == "" {
		t.Fatalf("got %q, %v, want how it ended", how, err)
	}
	if log := b.Log(ctx); !strings.Contains(log, "Out Of Memory") {
		t.Errorf("got a log without its memory:\n%s", log)
	}
	if err := b.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if err := fill(); err != nil {
		t.Errorf("after the restart: got %v, want no limit", err)
	}
}

func TestRabbitMQsMemoryWatermarkIsSetAndPutBack(t *testing.T) {
	ctx := within(t, time.Minute)
	b := brokertest.Start(t, "rabbitmq", "")
	used(t, ctx, b) // skips where it runs in a container
	was, err := b.SetMemoryWatermark(ctx, "{absolute,1000000000}")
	if err != nil || was != "0.4" {
		t.Errorf("got %q, %v before, want 0.4", was, err)
	}
	if s, err := b.Settings(ctx); err != nil || s["vm_memory_high_watermark"] != "{absolute,1000000000}" {
		t.Errorf("got %v, %v, want the watermark that was set", s["vm_memory_high_watermark"], err)
	}
	patience := func() string {
		s, err := b.Settings(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s["consumer_timeout"]
	}
	before := patience()
	if err := b.SetAckTimeout(ctx, 31*time.Minute); err != nil || patience() != "1860000" {
		t.Errorf("got %v, a consumer_timeout of %s, want 31 minutes", err, patience())
	}
	if err := b.SetAckTimeout(ctx, 30*time.Minute); err != nil || patience() != before {
		t.Errorf("got %v, a consumer_timeout of %s, want %s again", err, patience(), before)
	}
	if was, err = b.SetMemoryWatermark(ctx, "0.4"); err != nil || was != "{absolute,1000000000}" {
		t.Errorf("got %q, %v, want what was set", was, err)
	}
}

func TestTheMemoryOfAStrangersBrokerIsItsOwn(t *testing.T) {
	b, err := broker.External("redis", "redis://127.0.0.1:1/0")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.LimitMemory(t.Context(), 1); !errors.Is(err, broker.ErrNoMemoryLimit) || !errors.Is(err, broker.ErrExternal) {
		t.Errorf("a limit: got %v, want ErrNoMemoryLimit and ErrExternal", err)
	}
	if _, err := b.SetMemoryWatermark(t.Context(), "0.4"); !errors.Is(err, broker.ErrNoMemoryLimit) {
		t.Errorf("a watermark: got %v, want ErrNoMemoryLimit", err)
	}
	if err := b.SetAckTimeout(t.Context(), time.Second); !errors.Is(err, broker.ErrNoAckTimeout) || !errors.Is(err, broker.ErrExternal) {
		t.Errorf("an ack time-out: got %v, want ErrNoAckTimeout and ErrExternal", err)
	}
	if err := b.SetAckTimeout(t.Context(), 0); err == nil {
		t.Error("got no error from an ack time-out of 0")
	}
	if _, err := b.AwaitEnd(t.Context()); !errors.Is(err, broker.ErrExternal) {
		t.Errorf("its end: got %v, want ErrExternal", err)
	}
}
