package rabbitmq

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

// TestMain has more cases run at a time than there are processors: they wait for
// what must not come more than they work.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "6"); err != nil { // before the command line, which wins
		panic(err)
	}
	brokertest.Main(m)
}

func lab(t testing.TB) *broker.Broker {
	t.Helper()
	return brokertest.Start(t, "rabbitmq", "default")
}

// soon bounds what ought to take milliseconds.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// openAt opens a queue by the broker's address, or a proxy's.
func openAt(t testing.TB, base, query string) *rabbitQueue {
	t.Helper()
	u, err := url.Parse(base + "?" + query)
	if err != nil {
		t.Fatal(err)
	}
	q, err := Open(soon(t), u)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return q.(*rabbitQueue)
}

// open opens a queue of the test's own, and deletes it in the end.
func open(t testing.TB, query ...string) *rabbitQueue {
	t.Helper()
	q := openAt(t, lab(t).URL(), strings.Join(append(query, "settle=0s", "queue="+nameOf(t)), "&"))
	t.Cleanup(func() {
		if err := q.Delete(soon(t)); err != nil {
			t.Errorf("delete: %v", err)
		}
	})
	return q
}

func nameOf(t testing.TB) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("/#=&", r) {
			return '.'
		}
		return r
	}, t.Name())
}

func newPublisher(t testing.TB, q queue.Queue) *publisher {
	t.Helper()
	p, err := q.Publisher(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	return p.(*publisher)
}

func newConsumer(t testing.TB, q queue.Queue) *consumer {
	t.Helper()
	c, err := q.Consumer(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	return c.(*consumer)
}

func messages(prefix string, n int) []queue.Message {
	ms := make([]queue.Message, n)
	for i := range ms {
		ms[i] = queue.Message{ID: fmt.Sprintf("%s-%d", prefix, i), Key: fmt.Sprint("k", i%7), Body: []byte("a body")}
	}
	return ms
}

func publish(t testing.TB, p queue.Publisher, ms ...queue.Message) {
	t.Helper()
	if err := p.Publish(soon(t), ms...); err != nil {
		t.Fatal(err)
	}
}

// take receives n deliveries and settles none.
func take(t testing.TB, c queue.Consumer, n int) []*queue.Delivery {
	t.Helper()
	ctx := soon(t)
	var all []*queue.Delivery
	for len(all) < n {
		ds, err := c.Receive(ctx, n-len(all))
		if err != nil {
			t.Fatalf("got %d of %d deliveries, then: %v", len(all), n, err)
		}
		all = append(all, ds...)
	}
	return all
}

func idsOf(ds []*queue.Delivery) []string {
	ids := make([]string, len(ds))
	for i, d := range ds {
		ids[i] = d.ID
	}
	return ids
}

// eventually waits for a fact.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("not so after 20 s: %s", what)
		}
	}
}

func ready(t testing.TB, q *rabbitQueue) int64 {
	t.Helper()
	b, err := q.Backlog(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	return b.Ready
}
