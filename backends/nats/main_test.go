package nats

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
	"queuelab/queue/queuetest"
)

// The suite mostly waits, so more of its cases run at a time than there are
// processors.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "12"); err != nil { // before the command line, which wins
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	brokertest.Main(m)
}

// soon bounds what ought to take milliseconds.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func try(ctx context.Context, raw string) (queue.Queue, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	return Open(ctx, u)
}

func nameOf(t testing.TB) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("/#=&,.", r) {
			return '-'
		}
		return r
	}, t.Name())
}

// open opens a queue of the test's own, and deletes it in the end.
func open(t testing.TB, b *broker.Broker, query string) *stream {
	t.Helper()
	q, err := try(soon(t), b.QueueURL("nats", nameOf(t), query))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(q.Delete(soon(t)), q.Close()); err != nil {
			t.Errorf("delete and close the queue: %v", err)
		}
	})
	return q.(*stream)
}

func newConsumer(t testing.TB, q queue.Queue) *consumer {
	t.Helper()
	c, err := q.Consumer(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	return c.(*consumer)
}

func newPublisher(t testing.TB, q queue.Queue) queue.Publisher {
	t.Helper()
	p, err := q.Publisher(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func messages(ids ...string) []queue.Message {
	ms := make([]queue.Message, len(ids))
	for i, id := range ids {
		ms[i] = queue.Message{ID: id, Key: "k", Body: []byte("b")}
	}
	return ms
}

func publish(t testing.TB, p queue.Publisher, ms ...queue.Message) {
	t.Helper()
	if err := p.Publish(soon(t), ms...); err != nil {
		t.Fatal(err)
	}
}

// take receives at most max deliveries.
func take(t testing.TB, c queue.Consumer, max int) []*queue.Delivery {
	t.Helper()
	ds, err := c.Receive(soon(t), max)
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

func harness(b *broker.Broker, query string) queuetest.Harness {
	at := func(name string, params []string) string {
		return b.QueueURL("nats", name, strings.Join(append([]string{query}, params...), "&"))
	}
	return queuetest.Harness{
		Open: func(t testing.TB, name string, params ...string) queue.Queue {
			t.Helper()
			q, err := try(soon(t), at(name, params))
			if err != nil {
				t.Fatal(err)
			}
			return q
		},
		OpenErr: func(params ...string) error {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			q, err := try(ctx, at("open-err", params))
			if err != nil {
				return err
			}
			return errors.Join(q.Delete(ctx), q.Close())
		},
		Crash: func(t testing.TB) {
			t.Helper()
			if err := errors.Join(b.Kill(soon(t)), b.Restart(soon(t))); err != nil {
				t.Fatal(err)
			}
		},
		Freeze: func(t testing.TB) func() {
			t.Helper()
			if err := b.Pause(soon(t)); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := b.Resume(soon(t)); err != nil {
					t.Error(err)
				}
			}
		},
		Redelivery: 2500 * time.Millisecond,
		Arrival:    5 * time.Second,
	}
}

func answered(said string) answer { return answer{msg: &nats.Msg{Data: []byte(said)}} }
