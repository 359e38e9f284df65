package broker_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
)

func TestAKafkaGivenByURLIsNamedByWhatItCanDo(t *testing.T) {
	ctx := within(t, 3*time.Minute)
	ours := brokertest.Start(t, "kafka", "")
	b, err := broker.External("kafka", ours.URL())
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.Version(ctx)
	if want := "metadata.version 4.3-IV0"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	s, err := b.Settings(ctx)
	if err != nil || s["brokers"] != "1" {
		t.Errorf("got %v, %v, want the settings of one broker", s, err)
	}
}

func TestAKafkaThatDoesNotAnswerHasNoVersion(t *testing.T) {
	b, err := broker.External("kafka", "kafka://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := b.Version(within(t, time.Minute)); err == nil {
		t.Errorf("got version %q, want an error", v)
	}
}

func TestRabbitMQTellsTheLimitsThatItApplies(t *testing.T) {
	ctx := within(t, time.Minute)
	b := brokertest.Start(t, "rabbitmq", "")
	used(t, ctx, b) // skips where it runs in a container, and cannot be asked
	s, err := b.Settings(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"disk_free_limit_bytes": "50000000", "vm_memory_high_watermark": "0.4", "consumer_timeout": "1800000", "net_ticktime": "60"} {
		if s[name] != want {
			t.Errorf("got %s=%q, want %q", name, s[name], want)
		}
	}
	if n, err := strconv.ParseInt(s["vm_memory_limit_bytes"], 10, 64); err != nil || n < 10<<20 {
		t.Errorf("got a memory limit of %q, want bytes computed from the machine's memory", s["vm_memory_limit_bytes"])
	}
}

func TestPostgresKeepsWhenARowWasCommitted(t *testing.T) {
	ctx := within(t, time.Minute)
	c, err := pgx.Connect(ctx, brokertest.Start(t, "postgres", "").URL())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	var before, committed, after time.Time
	if err := c.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&before); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(ctx, "CREATE TABLE stamped AS SELECT 1 AS n"); err != nil {
		t.Fatal(err)
	}
	defer c.Exec(ctx, "DROP TABLE stamped")
	if err := c.QueryRow(ctx, "SELECT pg_xact_commit_timestamp(xmin), clock_timestamp() FROM stamped").Scan(&committed, &after); err != nil {
		t.Fatal(err)
	}
	if committed.Before(before) || committed.After(after) {
		t.Errorf("got the commit at %v, want it between %v and %v", committed, before, after)
	}
}
