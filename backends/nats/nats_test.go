package nats

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

func idsOf(ds []*queue.Delivery) []string {
	var ids []string
	for _, d := range ds {
		ids = append(ids, d.ID)
	}
	return ids
}

// backlogOf waits until the server's counts are as they should be.
func backlogOf(t testing.TB, q *stream, want queue.Backlog) {
	t.Helper()
	var got queue.Backlog
	for limit := time.Now().Add(20 * time.Second); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		var err error
		if got, err = q.Backlog(soon(t)); err != nil {
			t.Fatal(err)
		}
		if got == want {
			return
		}
	}
	t.Fatalf("got backlog %+v, want %+v", got, want)
}

func TestAnIDIsStoredOnceWhereTheServerLooks(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]int64{"dedupe=1m": 1, "": 2} {
		q := open(t, brokertest.Start(t, "nats", ""), query)
		id := "秒杀/1?x=%20 ✓\r\n"
		for range 2 { // by two publishers, as after a restart
			p := newPublisher(t, q)
			publish(t, p, messages(id)...)
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
		}
		backlogOf(t, q, queue.Backlog{Ready: want})
		if err := q.Delete(soon(t)); err != nil {
			t.Fatal(err)
		}
	}
}

// There is no fence: who has lost a delivery settles it under the hands of who
// has it now.
func TestALateAckSettlesWhatAnotherConsumerHas(t *testing.T) {
	t.Parallel()
	q := open(t, brokertest.Start(t, "nats", ""), "ack-wait=300ms&prefetch=1")
	slow := newConsumer(t, q)
	publish(t, newPublisher(t, q), messages("1")...)
	late := take(t, slow, 1)
	other := newConsumer(t, q)
	again := take(t, other, 1)
	if again[0].ID != "1" || again[0].Attempt < 2 {
		t.Fatalf("got %s, attempt %d, want 1 again", again[0].ID, again[0].Attempt)
	}
	if err := slow.Ack(soon(t), late...); err != nil {
		t.Errorf("a late ack: got %v, want nil", err)
	}
	backlogOf(t, q, queue.Backlog{})
	if err := other.Close(); err != nil { // it gives back what is not its own any more
		t.Fatal(err)
	}
	backlogOf(t, q, queue.Backlog{})
}

func TestPendingBoundsWhatAGroupHolds(t *testing.T) {
	t.Parallel()
	q := open(t, brokertest.Start(t, "nats", ""), "pending=2&prefetch=1")
	publish(t, newPublisher(t, q), messages("1", "2", "3")...)
	one, other := newConsumer(t, q), newConsumer(t, q)
	held := take(t, one, 2)
	for len(held) < 2 {
		held = append(held, take(t, one, 2-len(held))...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if ds, err := other.Receive(ctx, 1); err != context.DeadlineExceeded {
		t.Fatalf("with 2 of 2 held: got %v, %v, want nothing", idsOf(ds), err)
	}
	if err := one.Ack(soon(t), held[0]); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"3"}, idsOf(take(t, other, 1))); diff != "" {
		t.Errorf("with 1 of 2 held (-want +got):\n%s", diff)
	}
}

func TestCloseGivesBackWhatWasAskedForAhead(t *testing.T) {
	t.Parallel()
	q := open(t, brokertest.Start(t, "nats", ""), "ack-wait=1h&prefetch=10")
	publish(t, newPublisher(t, q), messages("1", "2", "3", "4", "5")...)
	c := newConsumer(t, q)
	if err := c.Ack(soon(t), take(t, c, 1)...); err != nil {
		t.Fatal(err)
	}
	backlogOf(t, q, queue.Backlog{InFlight: 4})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	next := newConsumer(t, q)
	var got []string
	for len(got) < 4 {
		ds := take(t, next, 10)
		got = append(got, idsOf(ds)...)
		if err := next.Ack(soon(t), ds...); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"2", "3", "4", "5"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatSomebodyElsePublishesIsAnErrorAndNoEnd(t *testing.T) {
	t.Parallel()
	q := open(t, brokertest.Start(t, "nats", ""), "")
	if err := q.control.Publish(q.subject, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := q.control.FlushWithContext(soon(t)); err != nil {
		t.Fatal(err)
	}
	publish(t, newPublisher(t, q), messages("1")...)
	c := newConsumer(t, q)
	if ds, err := c.Receive(soon(t), 10); err == nil || !strings.Contains(err.Error(), "somebody else") {
		t.Errorf("got %v, %v, want an error that says so", idsOf(ds), err)
	}
	ds := take(t, c, 10)
	if diff := cmp.Diff([]string{"1"}, idsOf(ds)); diff != "" {
		t.Errorf("then (-want +got):\n%s", diff)
	}
	if err := c.Ack(soon(t), ds...); err != nil {
		t.Fatal(err)
	}
	backlogOf(t, q, queue.Backlog{})
}

func TestWhatTheServerRefusesIsRejected(t *testing.T) {
	t.Parallel()
	q := open(t, brokertest.Start(t, "nats", ""), "")
	p := newPublisher(t, q)
	big := messages("small", "big", "small too")
	big[1].Body = make([]byte, 2<<20)
	err := p.Publish(soon(t), big...)
	for i, want := range []queue.Outcome{queue.Accepted, queue.Rejected, queue.Accepted} {
		if got := queue.OutcomeOf(err, i); got != want {
			t.Errorf("message %s: got %v, want %v", big[i].ID, got, want)
		}
	}
	if err := q.Delete(soon(t)); err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(soon(t), messages("1")...); queue.OutcomeOf(err, 0) != queue.Rejected {
		t.Errorf("publish to a stream that is gone: got %v, want rejected", err)
	}
}

func TestAnAnswerIsReadForWhatItSays(t *testing.T) {
	for said, want := range map[string]queue.Outcome{
		`{"stream":"q","seq":1}`:                  queue.Accepted,
		`{"stream":"q","seq":1,"duplicate":true}`: queue.Accepted,
		`{"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum"}}`: queue.Rejected,
		`{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"}}`:    queue.Rejected,
		`{"error":{"code":503,"err_code":10077,"description":"no space left on device"}}`:      queue.Unknown,
		`{}`:  queue.Unknown,
		`+OK`: queue.Unknown,
	} {
		if got, err := outcomeOf(answered(said)); got != want || (err == nil) != (want == queue.Accepted) {
			t.Errorf("%s: got %v, %v, want %v", said, got, err, want)
		}
	}
}

func TestCapabilitiesAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]queue.Confirm{"default": queue.ConfirmOS, "sync-always": queue.ConfirmDisk} {
		if got := open(t, brokertest.Start(t, "nats", setting), "").Capabilities().Confirm; got != want {
			t.Errorf("%s: got %v, want %v", setting, got, want)
		}
	}
}

func TestABadURLIsNamed(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "nats", "")
	open(t, b, "")
	for raw, want := range map[string]string{
		b.URL():                                             "queue=NAME is missing",
		b.QueueURL("nats", "a.b", ""):                       "no dot",
		b.QueueURL("nats", "q", "group=g"):                  "retention=interest",
		b.QueueURL("nats", "q", "dedupe=1ms"):               "at least 100ms",
		b.QueueURL("nats", "q", "type=quorum"):              "the known ones are ack-wait",
		b.QueueURL("nats", nameOf(t), "retention=interest"): "exists with other settings",
		b.QueueURL("nats", nameOf(t), "ack-wait=2s"):        "another ack-wait",
		"nats://lab:secret@127.0.0.1:1?queue=q&timeout=1s":  "no servers available",
	} {
		_, err := try(soon(t), raw)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want an error with %q and without the password", raw, err, want)
		}
	}
}

// The server is for the lab: the service links the client alone.
func TestTheServiceDoesNotLinkTheServer(t *testing.T) {
	out, err := exec.CommandContext(soon(t), "go", "list", "-deps", "queuelab/app").CombinedOutput()
	if err != nil {
		var missing *exec.Error
		if errors.As(err, &missing) && os.Getenv("CI") != "true" {
			t.Skip(err)
		}
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), "nats-io/nats.go") || strings.Contains(string(out), "nats-io/nats-server") {
		t.Errorf("got the dependencies of the service\n%s\nwant nats.go among them, and no nats-server", out)
	}
}

// An ack in a work queue is a removal, which is written before the answer,
// wherever in the stream.
func TestAcksOfAWorkQueueSurviveAKill(t *testing.T) {
	t.Parallel()
	brokertest.Need(t, "nats")
	b, err := broker.Start(soon(t), broker.Options{Kind: "nats"}) // its own, since others run beside this
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	})
	q := open(t, b, "")
	var ids []string
	for i := range 100 {
		ids = append(ids, fmt.Sprint(i))
	}
	publish(t, newPublisher(t, q), messages(ids...)...)
	c := newConsumer(t, q)
	var ds []*queue.Delivery
	for len(ds) < len(ids) {
		ds = append(ds, take(t, c, len(ids))...)
	}
	var done []*queue.Delivery
	for i := 0; i < len(ds); i += 2 {
		done = append(done, ds[i])
	}
	if err := c.Ack(soon(t), done...); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Kill(soon(t)), b.Restart(soon(t))); err != nil {
		t.Fatal(err)
	}
	again, err := try(soon(t), b.QueueURL("nats", nameOf(t), ""))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	left, err := again.(queue.Backlogger).Backlog(soon(t))
	if err != nil || left.Ready+left.InFlight != 50 {
		t.Errorf("got %+v, %v after a kill, want the 50 that were not acked", left, err)
	}
}
