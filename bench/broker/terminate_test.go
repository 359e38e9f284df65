package broker_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
)

func TestATerminatedBrokerEndsInOrderAndComesBack(t *testing.T) {
	for _, c := range []struct{ kind, says string }{
		{"redis", "Redis is now ready to exit"},
		{"rabbitmq", "SIGTERM received - shutting down"},
		{"kafka", "shut down completed"},
		{"postgres", "database system is shut down"},
		{"nats", "Initiating Shutdown"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			if c.kind == "kafka" && os.Getenv("QUEUELAB_SOAK") == "" {
				t.Skip("another start of Kafka takes seconds: QUEUELAB_SOAK=1 runs it")
			}
			ctx := within(t, 3*time.Minute)
			b := brokertest.Start(t, c.kind, "")
			if c.kind == "postgres" { // a client that stays
				conn, err := pgx.Connect(ctx, b.URL())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close(ctx)
			}
			before := len(b.Log(ctx))
			if err := b.Terminate(ctx); err != nil {
				t.Fatal(err)
			}
			if err := b.Ready(ctx); err == nil {
				t.Error("got an answer from a terminated broker, want an error")
			}
			if said := b.Log(ctx)[before:]; !strings.Contains(said, c.says) {
				t.Errorf("got the log\n%s\nwant the broker to say %q: SIGTERM did not reach it", said, c.says)
			}
			if err := b.Restart(ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestABrokerThatDoesNotEndIsKilledAndThatIsAnError(t *testing.T) {
	if os.Getenv("QUEUELAB_SOAK") == "" {
		t.Skip("it waits 30 s for a broker that stands still: QUEUELAB_SOAK=1 runs it")
	}
	ctx := within(t, 2*time.Minute)
	brokertest.Start(t, "redis", "") // skips where there is none
	b, err := broker.Start(ctx, broker.Options{Kind: "redis"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	if err := b.Pause(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.Terminate(ctx); err == nil || !strings.Contains(err.Error(), "30s") {
		t.Errorf("got %v, want an error that tells how long it was waited for", err)
	}
	if err := errors.Join(b.Restart(ctx), b.Ready(ctx)); err != nil {
		t.Errorf("got %v, want it started again", err)
	}
}
