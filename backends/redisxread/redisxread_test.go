package redisxread_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"queuelab/backends/internal/redistest"
	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

func server(t *testing.T) *broker.Broker { return brokertest.Start(t, "redis", "no-persistence") }

func publish(t *testing.T, p queue.Publisher, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := p.Publish(t.Context(), queue.Message{ID: id}); err != nil {
			t.Fatalf("publish: %v", err)
		}
	}
}

func ids(ds []*queue.Delivery) string {
	var all []string
	for _, d := range ds {
		all = append(all, d.ID)
	}
	return fmt.Sprint(all)
}

func ack(t *testing.T, c queue.Consumer, ds ...*queue.Delivery) {
	t.Helper()
	if err := c.Ack(t.Context(), ds...); err != nil {
		t.Fatalf("ack: %v", err)
	}
}

func consumer(t *testing.T, q queue.Queue) queue.Consumer {
	t.Helper()
	c, err := q.Consumer(t.Context())
	if err != nil {
		t.Fatalf("consumer: %v", err)
	}
	return c
}

// The same messages, published while the consumer handles another: one way of
// reading never gives them, the other does.
func TestWhatComesBetweenTwoReadsIsSkippedOrNot(t *testing.T) {
	for from, want := range map[string]string{"$": "[during the next read]", "tracked": "[1 2 3 during the next read]"} {
		t.Run(from, func(t *testing.T) {
			q := backend.Queue(t, server(t), "between"+strings.Trim(from, "$"), "from="+from)
			c, p := redistest.Both(t, q)
			publish(t, p, "1", "2", "3")
			// The read has begun when the server has a client that blocks.
			n := 4
			if from == "$" {
				n = 1
			}
			got := redistest.Taking(t, c, n)
			redistest.Eventually(t, "the consumer waits", func() bool {
				list, err := redistest.Client(t, server(t)).ClientList(t.Context()).Result()
				return err == nil && strings.Contains(list, "cmd=xread") && strings.Contains(list, "flags=b")
			})
			publish(t, p, "during the next read")
			if got := ids(<-got); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestAPlaceIsKeptByNameAndUpToTheFirstThatIsNotAcked(t *testing.T) {
	one := backend.Queue(t, server(t), "places", "name=one")
	c, p := redistest.Both(t, one)
	publish(t, p, "1", "2", "3", "4", "5")
	ds := redistest.Take(t, c, 5)
	ack(t, c, ds[0], ds[2], ds[3]) // 2 is not
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = consumer(t, one)
	again := redistest.Take(t, c, 4)
	if got, want := ids(again), "[2 3 4 5]"; got != want {
		t.Errorf("after 1, 3 and 4 were acked: got %s, want %s", got, want)
	}
	ack(t, c, again...)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	publish(t, p, "6")
	if got, want := ids(redistest.Take(t, consumer(t, one), 1)), "[6]"; got != want {
		t.Errorf("after all were acked: got %s, want %s", got, want)
	}
	two := backend.Queue(t, server(t), "places", "name=two")
	if got, want := ids(redistest.Take(t, consumer(t, two), 6)), "[1 2 3 4 5 6]"; got != want {
		t.Errorf("another name: got %s, want %s", got, want)
	}
}

func TestASlowConsumerDoesNotTakeAPlaceBack(t *testing.T) {
	q := backend.Queue(t, server(t), "slow", "")
	fast, p := redistest.Both(t, q)
	slow := consumer(t, q)
	publish(t, p, "1", "2", "3")
	all, first := redistest.Take(t, fast, 3), redistest.Take(t, slow, 1)
	ack(t, fast, all...)
	ack(t, slow, first...)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if ds, err := consumer(t, q).Receive(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a third consumer of the name: got %s and %v, want nothing", ids(ds), err)
	}
	left, err := q.(queue.Backlogger).Backlog(t.Context())
	if err != nil || left.Ready != 0 {
		t.Errorf("backlog: got %+v, %v, want none ready", left, err)
	}
}

func TestALostReplyToAReadIsReadAgain(t *testing.T) {
	proxy := redistest.NewProxy(t, server(t))
	c := consumer(t, backend.At(t, proxy.URL(backend, "lostread", "")))
	_, p := redistest.Both(t, backend.Queue(t, server(t), "lostread", ""))
	publish(t, p, "1", "2")
	proxy.LoseReply("xread")
	if ds, err := c.Receive(t.Context(), 2); err == nil {
		t.Fatalf("receive whose reply is lost: got %s, want an error", ids(ds))
	}
	if got, want := ids(redistest.Take(t, c, 2)), "[1 2]"; got != want || proxy.Lost() != 1 {
		t.Errorf("got %s after %d lost replies, want %s after 1", got, proxy.Lost(), want)
	}
}

func TestAnAckWhoseReplyIsLostCanBeTriedAgain(t *testing.T) {
	proxy := redistest.NewProxy(t, server(t))
	q := backend.At(t, proxy.URL(backend, "lostack", ""))
	c, p := redistest.Both(t, q)
	publish(t, p, "1", "2")
	ds := redistest.Take(t, c, 2)
	ack(t, c, ds[0]) // the server has the script now
	proxy.LoseReply("evalsha")
	if err := c.Ack(t.Context(), ds[1]); err == nil || ds[1].Settled() {
		t.Errorf("ack whose reply is lost: got %v, settled %v, want an error and unsettled", err, ds[1].Settled())
	}
	ack(t, c, ds[1])
	if left, err := q.(queue.Backlogger).Backlog(t.Context()); err != nil || left.Ready != 0 {
		t.Errorf("backlog: got %+v, %v, want none ready", left, err)
	}
}

func TestAForeignEntryIsToldAndPassedOver(t *testing.T) {
	q := backend.Queue(t, server(t), "foreign", "")
	c, p := redistest.Both(t, q)
	publish(t, p, "1")
	if err := redistest.Client(t, server(t)).Do(t.Context(), "xadd", "xread:{foreign}", "*", "order", "42").Err(); err != nil {
		t.Fatal(err)
	}
	publish(t, p, "2")
	ack(t, c, redistest.Take(t, c, 1)...)
	var told error
	var last []*queue.Delivery
	for len(last) == 0 {
		ds, err := c.Receive(t.Context(), 1)
		if err != nil {
			told = err
		}
		last = ds
	}
	ack(t, c, last...)
	if told == nil || ids(last) != "[2]" {
		t.Errorf("got the error %v and then %s, want one and [2]", told, ids(last))
	}
	if left, err := q.(queue.Backlogger).Backlog(t.Context()); err != nil || left.Ready != 0 {
		t.Errorf("backlog: got %+v, %v, want none ready: what is foreign is passed", left, err)
	}
}

func TestWhatDoesNotGoTogetherIsRefused(t *testing.T) {
	for _, query := range []string{"from=$&name=x", "from=0", "count=0", "group=x"} {
		if q, err := backend.Try(server(t).QueueURL(backend.Scheme, "bad", query)); err == nil {
			q.Close()
			t.Errorf("%s: got nil, want an error", query)
		}
	}
}
