package rabbitmq

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"queuelab/queue"
	"queuelab/queue/queuetest"
)

// TestSuiteOfTheLadder runs the suite without its crashes, which would disturb
// each other on one broker and show nothing that TestSuite does not.
func TestSuiteOfTheLadder(t *testing.T) {
	for name, setting := range map[string]string{
		"no-confirm":     "type=classic&prefetch=128&confirm=false",
		"auto-ack":       "type=classic&auto-ack=true",
		"no-mandatory":   "type=classic&prefetch=128&mandatory=false",
		"drop-head":      "type=classic&prefetch=128&max-length=1000&overflow=drop-head",
		"reject-publish": "type=classic&prefetch=128&max-length=1000&overflow=reject-publish",
		"direct":         "type=classic&prefetch=128&exchange=direct",
		"topic":          "type=classic&prefetch=128&exchange=topic",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := lab(t)
			queuetest.Run(t, queuetest.Harness{
				Open: func(t testing.TB, name string, params ...string) queue.Queue {
					t.Helper()
					u, err := url.Parse(b.QueueURL("amqp", name, strings.Join(append(params, setting, "settle=0s"), "&")))
					if err != nil {
						t.Fatal(err)
					}
					q, err := Open(soon(t), u)
					if err != nil {
						t.Fatal(err)
					}
					return q
				},
				Redelivery: time.Second,
			})
		})
	}
}

// publishAt publishes one by one and returns what became of each.
func publishAt(t *testing.T, p queue.Publisher, ms []queue.Message) string {
	t.Helper()
	var got []string
	for _, m := range ms {
		got = append(got, queue.OutcomeOf(p.Publish(soon(t), m), 0).String())
	}
	return strings.Join(got, " ")
}

func TestAFullQueueDropsTheFirstOrRejectsTheLast(t *testing.T) {
	for _, c := range []struct{ overflow, outcomes, left string }{
		{"drop-head", "accepted accepted accepted accepted", "m-2 m-3"},
		{"reject-publish", "accepted accepted rejected rejected", "m-0 m-1"},
	} {
		for _, kind := range []string{"classic", "quorum"} {
			t.Run(c.overflow+" "+kind, func(t *testing.T) {
				q := open(t, "max-length=2", "overflow="+c.overflow, "type="+kind)
				p := newPublisher(t, q)
				ms := messages("m", 4)
				for i := range ms {
					ms[i].Key = "k"
				}
				got := publishAt(t, p, ms)
				if kind == "quorum" && c.overflow == "reject-publish" {
					// It lets in what is under way as it fills up.
					if !strings.HasSuffix(got, "rejected") {
						t.Errorf("got %s, want the last to be rejected", got)
					}
					return
				}
				if got != c.outcomes {
					t.Errorf("outcomes: got %s, want %s", got, c.outcomes)
				}
				if got := strings.Join(idsOf(take(t, newConsumer(t, q), 2)), " "); got != c.left {
					t.Errorf("left in the queue: got %s, want %s", got, c.left)
				}
			})
		}
	}
}

func TestWithoutMandatoryAMessageWithoutAQueueIsAcceptedAndGone(t *testing.T) {
	for mandatory, want := range map[string]string{"true": "rejected rejected", "false": "accepted accepted"} {
		t.Run(mandatory, func(t *testing.T) {
			q := open(t, "mandatory="+mandatory)
			p := newPublisher(t, q)
			if err := q.administer(soon(t), "delete", func(ch *amqp.Channel) error {
				_, err := ch.QueueDelete(q.queue, false, false, false)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if got := publishAt(t, p, messages("m", 2)); got != want {
				t.Errorf("without a queue: got %s, want %s", got, want)
			}
			newConsumer(t, q) // declares it again
			if n := ready(t, q); n != 0 {
				t.Errorf("got %d messages after the queue is back, want 0", n)
			}
		})
	}
}

func TestLimitsThatNobodyWouldHearOfAreRefused(t *testing.T) {
	for query, want := range map[string]string{
		"confirm=false&mandatory=true":                       "mandatory=true needs confirm=true",
		"overflow=drop-head":                                 "max-length",
		"max-length=9&overflow=reject-publish&confirm=false": "needs confirm=true",
		"max-length=0":                                       "max-length",
		"max-length=9&overflow=tail":                         "drop-head, reject-publish",
		"mandatory=yes":                                      "mandatory",
	} {
		_, err := parse(&url.URL{Scheme: "amqp", Host: "127.0.0.1", RawQuery: query})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error that says %q", query, err, want)
		}
	}
}

func TestALimitThatDiffersIsNamedAsInTheURL(t *testing.T) {
	open(t, "max-length=5")
	u, err := url.Parse(fmt.Sprintf("%s?queue=%s&max-length=6", lab(t).URL(), nameOf(t)))
	if err != nil {
		t.Fatal(err)
	}
	q, err := Open(context.Background(), u)
	if err == nil {
		q.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "exists with max-length 5") {
		t.Errorf("got %v, want an error that names max-length and 5", err)
	}
}
