package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

func TestAClaimSkipsARowThatAnotherTransactionHolds(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "postgres", "")
	q := open(t, b, "")
	publish(t, q, messages("", "1", "2", "3")...)
	tx, err := sql(t, b).Begin(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(soon(t), "SELECT FROM "+pgx.Identifier{q.name}.Sanitize()+" WHERE id = '1' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	c := newConsumer(t, q)
	if diff := cmp.Diff([]string{"2", "3"}, idsOf(take(t, c, 10))); diff != "" {
		t.Errorf("while another transaction has 1 (-want +got):\n%s", diff)
	}
	if err := tx.Rollback(soon(t)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1"}, idsOf(take(t, c, 10))); diff != "" {
		t.Errorf("when it has let go (-want +got):\n%s", diff)
	}
}

func TestABatchIsOneTransaction(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "postgres", "")
	q := open(t, b, "")
	publish(t, q, messages("k", "1", "2", "3", "4")...)
	var rows, transactions int
	err := sql(t, b).QueryRow(soon(t), "SELECT count(*), count(DISTINCT xmin::text) FROM "+pgx.Identifier{q.name}.Sanitize()).Scan(&rows, &transactions)
	if err != nil || rows != 4 || transactions != 1 {
		t.Errorf("got %d rows of %d transactions, %v, want 4 of 1", rows, transactions, err)
	}
}

func TestAnIdleConsumerIsRung(t *testing.T) {
	t.Parallel()
	q := open(t, brokertest.Start(t, "postgres", ""), "poll=1m&lease=1m")
	idle, other := newConsumer(t, q), newConsumer(t, q)
	receives := func() chan error {
		got := make(chan error, 1)
		ctx := soon(t) // which ends long before a poll
		go func() {
			ds, err := idle.Receive(ctx, 10)
			got <- errors.Join(err, idle.Ack(ctx, ds...))
		}()
		waits(t, idle)
		return got
	}
	got := receives()
	publish(t, q, messages("k", "1")...)
	if err := <-got; err != nil {
		t.Errorf("an idle consumer after a publish: got %v, want the message", err)
	}
	publish(t, q, messages("k", "2")...)
	ds := take(t, other, 1)
	got = receives()
	if err := other.Nack(soon(t), ds...); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("an idle consumer after a nack: got %v, want the message", err)
	}
}

// waits returns once the consumer has looked and found nothing.
func waits(t testing.TB, c *consumer) {
	t.Helper()
	eventually(t, "the consumer waits", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.rouse != nil
	})
}

func eventually(t testing.TB, fact string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("not so after 20 s: %s", fact)
		}
	}
}

func TestAPollFindsWhatNobodyRangFor(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "postgres", "")
	q := open(t, b, "poll=50ms")
	c := newConsumer(t, q)
	got := make(chan error, 1)
	ctx := soon(t)
	go func() {
		_, err := c.Receive(ctx, 10)
		got <- err
	}()
	waits(t, c)
	if _, err := sql(t, b).Exec(soon(t), "INSERT INTO "+pgx.Identifier{q.name}.Sanitize()+" (id, key, body) VALUES ('1', '', '')"); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("got %v, want the row within a poll", err)
	}
}

func TestALateAckIsGoodUntilSomebodyElseHasTheMessage(t *testing.T) {
	t.Parallel()
	q := open(t, brokertest.Start(t, "postgres", ""), "lease=100ms&poll=10ms")
	publish(t, q, messages("k", "1", "2")...)
	slow := newConsumer(t, q)
	ds := take(t, slow, 2)
	ready := func(n int64) func() bool {
		return func() bool {
			b, err := q.Backlog(soon(t))
			return err == nil && b.Ready == n
		}
	}
	eventually(t, "both leases have run out", ready(2))
	if err := slow.Ack(soon(t), ds[0]); err != nil {
		t.Errorf("a late ack of a message that nobody else has: got %v, want nil", err)
	}
	other := newConsumer(t, q)
	again := take(t, other, 2)
	if got := idsOf(again); len(got) != 1 || got[0] != "2" || again[0].Attempt != 2 {
		t.Fatalf("got %v again, attempt %d, want 2 with attempt 2", got, again[0].Attempt)
	}
	for op, settle := range map[string]func(context.Context, ...*queue.Delivery) error{"ack": slow.Ack, "nack": slow.Nack} {
		d := queue.NewDelivery(ds[1].Message, ds[1].Attempt, ds[1].Receipt())
		if err := settle(soon(t), d); !errors.Is(err, queue.ErrLeaseLost) {
			t.Errorf("a late %s of a message that another consumer has: got %v, want ErrLeaseLost", op, err)
		}
	}
}

// With asynchronous commits a crash takes claims back, with their counts: the
// number of an attempt alone does not tell whose it is.
func TestAClaimThatACrashTookBackIsFenced(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "postgres", "")
	q := open(t, b, "lease=1m")
	publish(t, q, messages("k", "1")...)
	old := newConsumer(t, q)
	ds := take(t, old, 1)
	if _, err := sql(t, b).Exec(soon(t), "UPDATE "+pgx.Identifier{q.name}.Sanitize()+" SET attempts = 0, holder = NULL, visible_at = '-infinity'"); err != nil {
		t.Fatal(err)
	}
	again := take(t, newConsumer(t, q), 1)
	if again[0].Attempt != ds[0].Attempt {
		t.Fatalf("got attempt %d, want %d once more", again[0].Attempt, ds[0].Attempt)
	}
	if err := old.Ack(soon(t), ds...); !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("got %v, want ErrLeaseLost", err)
	}
}

func TestWhatNobodyReceivedWasNotAttempted(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "postgres", "")
	q := open(t, b, "lease=1m")
	publish(t, q, messages("k", "1", "2")...)
	tx, err := sql(t, b).Begin(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(soon(t), "LOCK TABLE "+pgx.Identifier{q.name}.Sanitize()); err != nil {
		t.Fatal(err)
	}
	c := newConsumer(t, q)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Receive(ctx, 10); err != context.DeadlineExceeded {
		t.Fatalf("Receive while its claim cannot go on: got %v, want context.DeadlineExceeded as it is", err)
	}
	if err := tx.Rollback(soon(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the claim went through, for nobody", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.held) == 2
	})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for _, d := range take(t, newConsumer(t, q), 10) {
		if d.Attempt != 1 {
			t.Errorf("message %s: got attempt %d at its first delivery, want 1", d.ID, d.Attempt)
		}
	}
}

func TestWhatIsNoTextIsRejected(t *testing.T) {
	t.Parallel()
	q := open(t, brokertest.Start(t, "postgres", ""), "")
	p, err := q.Publisher(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]queue.Message{
		"an id with NUL":          {ID: "a\x00b"},
		"a key that is no UTF-8":  {ID: "a", Key: "\xff"},
		"a header with NUL":       {ID: "a", Headers: map[string]string{"h": "\x00"}},
		"a header name, no UTF-8": {ID: "a", Headers: map[string]string{"\xff": ""}},
		"a message without an id": {Key: "k"},
	} {
		err := p.Publish(soon(t), m)
		if queue.OutcomeOf(err, 0) != queue.Rejected {
			t.Errorf("%s: got %v, want rejected", name, err)
		}
	}
}

func TestAnErrorOfTheServerRejects(t *testing.T) {
	t.Parallel()
	q := open(t, brokertest.Start(t, "postgres", ""), "")
	p, err := q.Publisher(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Delete(soon(t)); err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(soon(t), messages("k", "1")...); queue.OutcomeOf(err, 0) != queue.Rejected {
		t.Errorf("publish to a table that is gone: got %v, want rejected", err)
	}
}

func TestCapabilitiesAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]queue.Confirm{"default": queue.ConfirmDisk, "async-commit": queue.ConfirmMemory} {
		caps := open(t, brokertest.Start(t, "postgres", setting), "").Capabilities()
		if caps.Confirm != want || caps.Durable != (want == queue.ConfirmDisk) || caps.Lossy() == caps.Durable {
			t.Errorf("%s: got %v, durable %v, lossy %v, want %v", setting, caps.Confirm, caps.Durable, caps.Lossy(), want)
		}
	}
	for _, c := range []struct {
		commit, sync, standbys string
		want                   queue.Confirm
	}{
		{"on", "on", "", queue.ConfirmDisk},
		{"local", "on", "", queue.ConfirmDisk},
		{"on", "off", "", queue.ConfirmOS},
		{"on", "on", "ANY 1 (a, b)", queue.ConfirmReplicas},
		{"remote_apply", "on", "a", queue.ConfirmReplicas},
		{"local", "on", "a", queue.ConfirmDisk},
		{"off", "on", "a", queue.ConfirmMemory},
	} {
		if got := capabilities(c.commit, c.sync, c.standbys).Confirm; got != c.want {
			t.Errorf("synchronous_commit %s, fsync %s, standbys %q: got %v, want %v", c.commit, c.sync, c.standbys, got, c.want)
		}
	}
}

func TestABadURLIsNamed(t *testing.T) {
	for raw, want := range map[string]string{
		"postgres://lab@127.0.0.1/lab":                                             "queue=NAME is missing",
		"postgres://lab@127.0.0.1/lab?queue=" + strings.Repeat("x", longestName+1): "has room for 50",
		"postgres://lab@127.0.0.1/lab?queue=q&lease=1ms":                           "a duration from 100ms",
		"postgres://lab@127.0.0.1/lab?queue=q&order=strict":                        "one of consumer, key",
		"postgres://lab@127.0.0.1/lab?queue=q&group=g":                             "the known ones are batch",
		"postgres://lab:secret@127.0.0.1:1/lab?queue=q&sslmode=disable&timeout=1s": "refused",
	} {
		_, err := try(soon(t), raw)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want an error with %q and without the password", raw, err, want)
		}
	}
}
