package rabbitmq

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"queuelab/queue"
)

// group opens another group of the test's exchange.
func group(t *testing.T, name string, query ...string) *rabbitQueue {
	t.Helper()
	return open(t, append(query, "group="+name)...)
}

func keyed(keys ...string) []queue.Message {
	ms := make([]queue.Message, len(keys))
	for i, key := range keys {
		ms[i] = queue.Message{ID: fmt.Sprint("m", i), Key: key}
	}
	return ms
}

func keysOf(t *testing.T, q *rabbitQueue, n int) []string {
	t.Helper()
	var keys []string
	for _, d := range take(t, newConsumer(t, q), n) {
		keys = append(keys, d.Key)
	}
	slices.Sort(keys) // of several channels
	if left := ready(t, q); left != 0 {
		t.Errorf("group %s: got %d more messages, want none", q.queue, left)
	}
	return keys
}

func TestEachGroupGetsWhatItIsBoundTo(t *testing.T) {
	all := []string{"", "order.late", "order.paid", "order.paid.card", "refund"}
	for name, c := range map[string]struct {
		exchange string
		bindings map[string]string // by group
		publish  []string
		want     map[string][]string
	}{
		"fanout": {"exchange=fanout", map[string]string{"a": "", "b": ""}, all, map[string][]string{"a": all, "b": all}},
		"direct by name": {"exchange=direct", map[string]string{"a": "", "b": ""}, all,
			map[string][]string{"a": all, "b": all}},
		"direct by key": {"exchange=direct&route=key", map[string]string{"a": "bind=refund,order.paid", "b": "bind=order.paid"},
			[]string{"order.paid", "refund"}, map[string][]string{"a": {"order.paid", "refund"}, "b": {"order.paid"}}},
		"topic": {"exchange=topic",
			map[string]string{"all": "", "one-word": "bind=order.*", "more": "bind=order.%23", "two": "bind=*.paid,order.*,refund"}, all,
			map[string][]string{
				"all": all, "one-word": {"order.late", "order.paid"}, "more": {"order.late", "order.paid", "order.paid.card"},
				"two": {"order.late", "order.paid", "refund"},
			}},
	} {
		t.Run(name, func(t *testing.T) {
			groups := map[string]*rabbitQueue{}
			for g, bind := range c.bindings {
				groups[g] = group(t, g, c.exchange, bind)
			}
			for _, q := range groups {
				publish(t, newPublisher(t, q), keyed(c.publish...)...)
				break // any handle publishes for all
			}
			for g, q := range groups {
				if diff := cmp.Diff(c.want[g], keysOf(t, q, len(c.want[g]))); diff != "" {
					t.Errorf("group %s (-want +got):\n%s", g, diff)
				}
			}
		})
	}
}

func TestAKeyThatNobodyIsBoundToIsRejected(t *testing.T) {
	for name, query := range map[string]string{"direct": "exchange=direct&route=key&bind=order", "topic": "exchange=topic&bind=order.%23"} {
		t.Run(name, func(t *testing.T) {
			q := open(t, query)
			ms := keyed("order", "stock", "order")
			err := newPublisher(t, q).Publish(soon(t), ms...)
			for i, want := range []queue.Outcome{queue.Accepted, queue.Rejected, queue.Accepted} {
				if got := queue.OutcomeOf(err, i); got != want {
					t.Errorf("message with key %q: got %v, want %v: %v", ms[i].Key, got, want, err)
				}
			}
			take(t, newConsumer(t, q), 2)
		})
	}
}

func TestAKeyThatIsTooLongToRouteByIsRejected(t *testing.T) {
	m := queue.Message{ID: "1", Key: strings.Repeat("k", 256)}
	if err := newPublisher(t, open(t, "exchange=topic")).Publish(soon(t), m); !errors.Is(err, queue.ErrRejected) {
		t.Errorf("topic: got %v, want ErrRejected", err)
	}
}

func TestAnExchangeKeepsItsKind(t *testing.T) {
	open(t, "exchange=topic")
	u, err := url.Parse(lab(t).URL() + "?settle=0s&queue=" + nameOf(t))
	if err != nil {
		t.Fatal(err)
	}
	q, err := Open(soon(t), u)
	if err == nil {
		q.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "exists with type topic: open it with exchange=topic") {
		t.Errorf("open it as a fanout: got %v, want an error that names what there is", err)
	}
}

func TestRoutesThatMeanNothingAreRefused(t *testing.T) {
	for _, query := range []string{
		"bind=a", "exchange=fanout&bind=a", "exchange=fanout&route=key", "exchange=direct&bind=a", "exchange=direct&route=key",
		"exchange=topic&route=queue", "exchange=headers", "exchange=topic&bind=" + strings.Repeat("k", 256),
	} {
		u, err := url.Parse("amqp://127.0.0.1/?" + query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parse(u); err == nil {
			t.Errorf("%s: got nil, want an error", query)
		}
	}
}
