package node

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/broker/brokertest"
	"queuelab/bench/fault"
	"queuelab/bench/ledger"
	"queuelab/queue"
)

// handling is a handler over a queue that says what it was told to do, with what
// the ledger has of it.
type handling struct {
	*handler
	told   []string
	noNack bool
	deaf   int // how many acks get no answer
	path   string
}

func newHandling(t *testing.T, url string, poison uint64) *handling {
	t.Helper()
	h := &handling{path: filepath.Join(t.TempDir(), "ledger")}
	w, err := ledger.Create(h.path, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	effects, err := OpenEffects(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(effects.Close)
	n := &node{cfg: Config{Process: 1, Consume: &Consume{Poison: poison}}, ledger: w}
	h.handler = &handler{node: n, consumer: ledger.RecordConsumer(h.queue(), w), effects: effects, failed: map[string]int{}}
	return h
}

// events are what the ledger says, in order.
func (h *handling) events(t *testing.T) []string {
	t.Helper()
	rs, err := ledger.Read(h.path)
	if err != nil {
		t.Fatal(err)
	}
	var es []string
	for _, r := range rs {
		es = append(es, fmt.Sprintf("%v %d", r.Event, r.Seq))
	}
	return es
}

func (h *handling) queue() queue.Consumer { return toldConsumer{h: h} }

type toldConsumer struct {
	queue.Consumer
	h *handling
}

func (c toldConsumer) settle(op string, ds []*queue.Delivery) error {
	return queue.Settle(ds, func(fresh []*queue.Delivery) error {
		for _, d := range fresh {
			c.h.told = append(c.h.told, op+" "+d.ID)
		}
		if c.h.deaf > 0 {
			c.h.deaf--
			return errNoAnswer
		}
		return nil
	})
}

func (c toldConsumer) Ack(_ context.Context, ds ...*queue.Delivery) error { return c.settle("ack", ds) }

func (c toldConsumer) Nack(_ context.Context, ds ...*queue.Delivery) error {
	if c.h.noNack {
		return queue.ErrUnsupported
	}
	return c.settle("nack", ds)
}

func delivery(seq uint64, attempt int) *queue.Delivery {
	id := ledger.FormatID(ledger.ID{Trial: 1, Producer: 1, Seq: seq})
	return queue.NewDelivery(queue.Message{ID: id}, attempt, nil)
}

func sqlite(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "effects.db") }

func TestAPoisonedMessageIsGivenUpAfterItsAttempts(t *testing.T) {
	for _, c := range []struct {
		name     string
		noNack   bool
		attempts []int // as the queue counts them, one for each delivery
		want     []string
	}{
		{"as the queue counts", false, []int{1, 2, 3, 4, 5}, []string{"nack 1-1-0-3", "nack 1-1-0-3", "nack 1-1-0-3", "nack 1-1-0-3", "ack 1-1-0-3"}},
		{"as the queue counted before this consumer", false, []int{4, 5}, []string{"nack 1-1-0-3", "ack 1-1-0-3"}},
		{"by us, where the queue merely flags", false, []int{1, 2, 2, 2, 2}, []string{"nack 1-1-0-3", "nack 1-1-0-3", "nack 1-1-0-3", "nack 1-1-0-3", "ack 1-1-0-3"}},
		{"in hand, where the queue takes nothing back", true, []int{0}, []string{"ack 1-1-0-3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHandling(t, sqlite(t), 3)
			h.noNack = c.noNack
			for _, attempt := range c.attempts {
				if err := h.handle(t.Context(), []*queue.Delivery{delivery(3, attempt)}); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(c.want, h.told); diff != "" {
				t.Errorf("what the queue was told (-want +got):\n%s", diff)
			}
			events := h.events(t)
			if got := events[len(events)-2:]; got[0] != "dead-lettered 3" || got[1] != "acked 3" {
				t.Errorf("got %v at the end of the ledger, want it dead-lettered, then acked", got)
			}
			if h.failed["1-1-0-3"] != fault.PoisonAttempts {
				t.Errorf("got %d attempts, want %d", h.failed["1-1-0-3"], fault.PoisonAttempts)
			}
		})
	}
}

func TestTheNeighboursOfAPoisonedMessageAreHandled(t *testing.T) {
	h := newHandling(t, sqlite(t), 3)
	if err := h.handle(t.Context(), []*queue.Delivery{delivery(2, 1), delivery(3, 1), delivery(4, 1)}); err != nil {
		t.Fatal(err)
	}
	want := []string{"nacked 3", "effect 2", "effect 4", "acked 2", "acked 4"}
	if diff := cmp.Diff(want, h.events(t)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

// While the database cannot commit there is no ack; once it can, there is.
func TestNothingIsAckedWithoutACommit(t *testing.T) {
	url := sqlite(t)
	h := newHandling(t, url, 0)
	if _, err := h.effects.db.ExecContext(t.Context(), `ALTER TABLE effects RENAME TO away`); err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := h.handle(stopped, []*queue.Delivery{delivery(1, 1)}); err != nil || len(h.told) > 0 {
		t.Errorf("got %v and %v, want it left alone: the stop came before a commit", err, h.told)
	}

	handled := make(chan error, 1)
	go func() { handled <- h.handle(t.Context(), []*queue.Delivery{delivery(2, 1)}) }()
	if _, err := h.effects.db.ExecContext(t.Context(), `ALTER TABLE away RENAME TO effects`); err != nil {
		t.Fatal(err)
	}
	if err := <-handled; err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ack 1-1-0-2"}, h.told); diff != "" {
		t.Errorf("what the queue was told (-want +got):\n%s", diff)
	}
	if n, err := h.effects.Count(t.Context(), 1); err != nil || n["1-1-0-2"] != 1 || len(n) != 1 {
		t.Errorf("got effects %v, %v, want one of message 2", n, err)
	}
}

func TestAnAckWithoutAnAnswerIsTriedAgain(t *testing.T) {
	h := newHandling(t, "", 0)
	h.deaf = 2
	if err := h.handle(t.Context(), []*queue.Delivery{delivery(1, 1)}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ack 1-1-0-1", "ack 1-1-0-1", "ack 1-1-0-1"}, h.told); diff != "" {
		t.Errorf("what the queue was told (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"acked 1"}, h.events(t)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

// A commit that gets no answer is in doubt, and is done all the same; one that
// the database refuses, or that never reached it, is certain.
func TestOnlyACommitWithoutAnAnswerIsInDoubt(t *testing.T) {
	pg := brokertest.Start(t, "postgres", "")
	h := newHandling(t, pg.URL(), 0)
	h.effects.timeout = 200 * time.Millisecond
	doubts := func() (n int) {
		for _, e := range h.events(t) {
			if strings.HasPrefix(e, ledger.EffectUnknown.String()) {
				n++
			}
		}
		return n
	}
	commit := func(seq uint64) error {
		return h.effects.Commit(t.Context(), h.node.ledger, 1, []*queue.Delivery{delivery(seq, 1)})
	}
	if err := commit(1); err != nil {
		t.Fatal(err)
	}
	if err := pg.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := commit(2); err == nil || doubts() != 1 {
			t.Errorf("attempt %d: got %v and %d doubts, want an error, and 1: only the first one was sent", i+1, err, doubts())
		}
	}
	if err := pg.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.effects.timeout = 10 * time.Second
	if err := commit(2); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		n, err := h.effects.Count(t.Context(), 1)
		if err == nil && n["1-1-0-2"] == 2 {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("got %d effects of message 2, %v, want 2: the commit in doubt was done", n["1-1-0-2"], err)
		}
	}
	if _, err := h.effects.db.ExecContext(t.Context(), `DROP TABLE effects`); err != nil {
		t.Fatal(err)
	}
	if err := commit(3); err == nil || doubts() != 1 {
		t.Errorf("got %v and %d doubts, want a refusal that leaves none", err, doubts())
	}
}

// answers is a publisher that ends its calls as it is told.
type answers struct {
	queue.Publisher
	errs []error
	sent int
}

func (p *answers) Publish(context.Context, ...queue.Message) error {
	p.sent++
	return p.errs[p.sent-1]
}

func TestOnlyAnUnknownOutcomeIsPublishedAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		errs []error
		want queue.Outcome
	}{
		{"an accepted one is not", []error{nil}, queue.Accepted},
		{"a rejected one is not", []error{queue.ErrRejected}, queue.Rejected},
		{"an unknown one is, until it is accepted", []error{errNoAnswer, errNoAnswer, nil}, queue.Accepted},
		{"as often as it may be", []error{errNoAnswer, errNoAnswer, errNoAnswer}, queue.Unknown},
		{"and stays unknown where another attempt is rejected", []error{errNoAnswer, queue.ErrRejected, queue.ErrRejected}, queue.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &answers{errs: c.errs}
			err := persistent{p, 2}.Publish(t.Context(), queue.Message{ID: "1-1-0-1"})
			if got := queue.OutcomeOf(err, 0); got != c.want || p.sent != len(c.errs) {
				t.Errorf("got %v after %d calls, want %v after %d", got, p.sent, c.want, len(c.errs))
			}
		})
	}
}

func TestARetryIsInTheLedgerWithTheSameIDAndItsFirstDueTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	w, err := ledger.Create(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	p := persistent{ledger.RecordPublisher(&answers{errs: []error{errNoAnswer, nil}}, w), 1}
	due := ledger.WithDue(t.Context(), func(int) int64 { return 5 })
	if err := p.Publish(due, queue.Message{ID: "1-1-0-1"}); err != nil {
		t.Fatal(err)
	}
	rs, err := ledger.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rs {
		got = append(got, fmt.Sprintf("%v %d", r.Event, r.Seq))
	}
	if diff := cmp.Diff([]string{"intent 1", "unknown 1", "intent 1", "accepted 1"}, got); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	if rs[0].Due != 5 || rs[2].Due == 5 {
		t.Errorf("got due times %d and %d, want the plan's for the first attempt only", rs[0].Due, rs[2].Due)
	}
}
