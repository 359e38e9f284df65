package kafka

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
	"queuelab/queue/queuetest"
)

func TestMain(m *testing.M) {
	// Most cases wait for Kafka's own clocks, not for a processor.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	brokertest.Main(m)
}

// session is as short as the broker allows, and therefore as long as an
// abandoned message may take.
const session = "session=1s"

func TestSuite(t *testing.T) {
	for _, c := range []struct{ client, acks string }{{"kafka-go", "all"}, {"kafka-go", "1"}, {"kafka-go", "0"}, {"franz", "all"}, {"franz", "0"}} {
		acks := c.acks
		t.Run(c.client+"-acks-"+acks, func(t *testing.T) {
			b := brokertest.Start(t, "kafka", "default")
			h := queuetest.Harness{
				Open: func(t testing.TB, name string, params ...string) queue.Queue {
					return openAt(t, b, name, append(params, session, "acks="+acks, "client="+c.client)...)
				},
				OpenErr:    func(params ...string) error { return tryOpen(b, append(params, session, "client="+c.client)...) },
				Crash:      func(t testing.TB) { crash(t, b) },
				Freeze:     func(t testing.TB) func() { return freeze(t, b) },
				Redelivery: 2500 * time.Millisecond,
				Arrival:    6 * time.Second,
			}
			if acks == "1" && os.Getenv("QUEUELAB_SOAK") == "" || c.client == "franz" && acks == "0" {
				h.Crash = nil // on one node a kill tests what acks=all has tested
			}
			queuetest.Run(t, h)
		})
	}
}

func tryOpen(b *broker.Broker, params ...string) error {
	u, err := url.Parse(b.QueueURL("kafka", "try-open", strings.Join(params, "&")))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q, err := Open(ctx, u)
	if err != nil {
		return err
	}
	return q.Close()
}

func freeze(t testing.TB, b *broker.Broker) (thaw func()) {
	t.Helper()
	if err := b.Pause(context.Background()); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := b.Resume(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// openAt opens a topic that is closed with the test; the parameters of a URL.
func openAt(t testing.TB, b *broker.Broker, topic string, params ...string) *topicQueue {
	t.Helper()
	u, err := url.Parse(b.QueueURL("kafka", topic, strings.Join(params, "&")))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q, err := Open(ctx, u)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	return q.(*topicQueue)
}

func crash(t testing.TB, b *broker.Broker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := b.Kill(ctx); err != nil {
		t.Fatal(fmt.Errorf("kill: %w", err))
	}
	if err := b.Restart(ctx); err != nil {
		t.Fatal(fmt.Errorf("restart: %w", err))
	}
}
