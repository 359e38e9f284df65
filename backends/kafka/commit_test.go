package kafka

import (
	"context"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/proxy"
	"queuelab/queue"
	"queuelab/queue/queuetest"
)

// TestSuiteOfTheLadder runs the suite without its crashes, which TestSuite has.
// What differs from another setting by a number or by the broker's disk alone is
// left to the soak.
func TestSuiteOfTheLadder(t *testing.T) {
	soak := os.Getenv("QUEUELAB_SOAK") != ""
	for name, query := range map[string]string{
		"flush":   "flush=1",
		"before":  "commit=before",
		"auto":    "commit=auto&commit-interval=20ms",
		"poll":    "commit=poll&commit-interval=20ms",
		"retries": "retries=3",
		"franz":   "retries=3&client=franz",
	} {
		t.Run(name, func(t *testing.T) {
			if (name == "flush" || name == "auto") && !soak {
				t.Skip("only in the soak")
			}
			t.Parallel()
			b := start(t)
			params := append(strings.Split(query, "&"), session)
			queuetest.Run(t, queuetest.Harness{
				Open: func(t testing.TB, name string, more ...string) queue.Queue {
					return openAt(t, b, name, append(more, params...)...)
				},
				OpenErr:    func(more ...string) error { return tryOpen(b, append(more, session)...) },
				Redelivery: 2500 * time.Millisecond,
				Arrival:    6 * time.Second,
			})
		})
	}
}

// committed waits until the group of q has committed n messages of all.
func committed(t *testing.T, q *topicQueue, n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got int64
	for {
		if got = committedNow(t, q); got == n {
			return
		}
		if pause(ctx, 5*time.Millisecond) != nil {
			t.Fatalf("waited %v in vain: got %d messages committed, want %d", patience, got, n)
		}
	}
}

func committedNow(t *testing.T, q *topicQueue) int64 {
	t.Helper()
	spans, err := q.spans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	for _, s := range spans {
		n += max(s.committed, 0)
	}
	return n
}

func TestOffsetsAreCommittedWhenTheSettingSaysSo(t *testing.T) {
	b := start(t)
	for _, c := range []struct {
		commit                    string
		returned, polled, settled int64 // what is committed by then, of 2, 2 and 4 returned
	}{
		{"commit=after", 0, 0, 4},
		{"commit=before", 2, 4, 4},
		{"commit=auto&commit-interval=10ms", 2, 4, 4},
		{"commit=poll&commit-interval=10ms", 0, 2, 4},
	} {
		t.Run(c.commit, func(t *testing.T) {
			t.Parallel()
			q := openAt(t, b, topicFor(t), append(strings.Split(c.commit, "&"), session, "partitions=1")...)
			publish(t, q, messages(4, "k")...)
			consumer := consumerOf(t, q)
			ds := receive(t, consumer, 2)
			committed(t, q, c.returned)
			if c.returned == 0 {
				_ = pause(t.Context(), 50*time.Millisecond) // the longer, the sharper the test
				committed(t, q, 0)
			}
			ds = append(ds, receive(t, consumer, 2)...)
			committed(t, q, c.polled)
			ack(t, consumer, ds...)
			committed(t, q, c.settled)
			if err := consumer.Close(); err != nil {
				t.Fatal(err)
			}
			committed(t, q, 4) // Close commits what was returned, or it was acked
		})
	}
}

// A Receive that ends while its commit is under way hands out what it has taken
// the next time, and neither loses nor doubles it.
func TestACommitBeforeThatIsCutShortSwallowsNothing(t *testing.T) {
	b := start(t)
	q := openAt(t, b, topicFor(t), session, "commit=before", "partitions=1")
	c := consumerOf(t, q)
	publish(t, q, messages(6, "k")...)
	await(t, "all messages are fetched", &c.mu, func() bool { return c.current != nil && c.current.parts[0].ready() == 6 })
	thaw := freeze(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	ds, err := c.Receive(ctx, 4)
	cancel()
	thaw()
	if !errors.Is(err, context.DeadlineExceeded) || len(ds) > 0 {
		t.Fatalf("receive from a broker that stands still: got %v and %v, want nothing: it has committed nothing", idsOf(ds), err)
	}
	var got []string
	for len(got) < 6 {
		for _, d := range receive(t, c, 1) {
			got = append(got, d.ID)
		}
	}
	if text := strings.Join(got, " "); text != "0 1 2 3 4 5" {
		t.Errorf("got %s, want each once and in order", text)
	}
	receiveNothing(t, c)
}

func TestWithRetriesALostAnswerIsNoErrorAndASecondCopyUnlessTheProducerIsIdempotent(t *testing.T) {
	b := start(t)
	listen, target, err := b.ProxyAddrs()
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.New(listen, target, proxy.Speaks("kafka"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	topic := topicFor(t)
	direct := openAt(t, b, topic, session)
	for retries, want := range map[string]string{"retries=0": "unknown", "retries=3": "accepted", "client=franz&retries=3": "accepted"} {
		u, err := url.Parse("kafka://" + p.Addr() + "/" + topic + "?" + retries)
		if err != nil {
			t.Fatal(err)
		}
		q, err := Open(t.Context(), u)
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		through := publisherOf(t, q)
		if err := through.Publish(t.Context(), queue.Message{ID: "warm " + retries, Key: "k"}); err != nil {
			t.Fatal(err)
		}
		lost := p.LoseReply(proxy.Published("kafka"))
		got := queue.OutcomeOf(through.Publish(t.Context(), queue.Message{ID: retries, Key: "k"}), 0)
		<-lost
		if got.String() != want {
			t.Errorf("%s: got %v, want %s", retries, got, want)
		}
	}
	consumer := consumerOf(t, direct)
	got := idsOf(receive(t, consumer, 7))
	want := []string{"client=franz&retries=3", "retries=0", "retries=3", "retries=3", "warm client=franz&retries=3", "warm retries=0", "warm retries=3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stored twice is what kafka-go tried again, and all else once (-want +got):\n%s", diff)
	}
	receiveNothing(t, consumer)
}

func TestCommitsThatMeanNothingAreRefused(t *testing.T) {
	for query, want := range map[string]string{
		"commit=later":                  "after, before, auto, poll",
		"commit-interval=1s":            "commit=auto",
		"commit=auto&commit-interval=0": "commit-interval",
		"retries=-1":                    "retries",
		"retries=1&client=franz&acks=1": "acks=all",
	} {
		if _, err := parseURL(t, "kafka://h/orders?"+query); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error that says %q", query, err, want)
		}
	}
}

func TestOnlyAcksMakeItAtLeastOnce(t *testing.T) {
	for _, commit := range []string{commitAfter, commitBefore, commitAuto, commitPoll} {
		caps := (&topicQueue{settings: settings{acks: acksAll, commit: commit}}).Capabilities()
		least := commit == commitAfter
		if (caps.Guarantee == queue.AtLeastOnce) != least || caps.AckConfirmed != least || caps.LeaseFenced != least {
			t.Errorf("commit=%s: got %+v, want at least once, with confirmed acks and a fenced lease: %v", commit, caps, least)
		}
	}
}
