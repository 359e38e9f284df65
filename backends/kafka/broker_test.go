package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kafkago "github.com/segmentio/kafka-go"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

// patience bounds every wait for a fact.
const patience = 30 * time.Second

func topicFor(tb testing.TB) string {
	return fmt.Sprintf("t%d", time.Now().UnixNano())
}

func start(t testing.TB) *broker.Broker { return brokertest.Start(t, "kafka", "default") }

func publisherOf(tb testing.TB, q queue.Queue) queue.Publisher {
	tb.Helper()
	p, err := q.Publisher(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func consumerOf(tb testing.TB, q queue.Queue) *consumer {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	c, err := q.Consumer(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	return c.(*consumer)
}

// messages have ids 0 to n-1 and the key.
func messages(n int, key string) []queue.Message {
	ms := make([]queue.Message, n)
	for i := range ms {
		ms[i] = queue.Message{ID: fmt.Sprint(i), Key: key}
	}
	return ms
}

func publish(tb testing.TB, q queue.Queue, ms ...queue.Message) {
	tb.Helper()
	if err := publisherOf(tb, q).Publish(tb.Context(), ms...); err != nil {
		tb.Fatal(err)
	}
}

func receive(tb testing.TB, c queue.Consumer, n int) []*queue.Delivery {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	var all []*queue.Delivery
	for len(all) < n {
		ds, err := c.Receive(ctx, n-len(all))
		if err != nil {
			tb.Fatalf("received %v of %d, then: %v", idsOf(all), n, err)
		}
		all = append(all, ds...)
	}
	return all
}

func receiveNothing(tb testing.TB, c queue.Consumer) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 300*time.Millisecond)
	defer cancel()
	if ds, err := c.Receive(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
		tb.Errorf("got %v and %v, want nothing", idsOf(ds), err)
	}
}

func ack(tb testing.TB, c queue.Consumer, ds ...*queue.Delivery) {
	tb.Helper()
	if err := c.Ack(tb.Context(), ds...); err != nil {
		tb.Errorf("ack %v: %v", idsOf(ds), err)
	}
}

func idsOf(ds []*queue.Delivery) []string {
	ids := []string{}
	for _, d := range ds {
		ids = append(ids, d.ID)
	}
	slices.Sort(ids)
	return ids
}

// await waits for a fact that mu guards.
func await(tb testing.TB, what string, mu sync.Locker, fact func() bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	for {
		mu.Lock()
		holds := fact()
		mu.Unlock()
		if holds {
			return
		}
		if pause(ctx, time.Millisecond) != nil {
			tb.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}

// vanish ends a consumer as kill -9 of its process would: nothing is
// committed, and it does not leave the group.
func (c *consumer) vanish() {
	c.dialer.cut()
	_ = c.Close()
}

func TestTheFirstMessageOfANewTopicIsNotLost(t *testing.T) {
	b := start(t)
	for range 5 {
		q := openAt(t, b, topicFor(t))
		publish(t, q, messages(8, "")...) // to every partition
	}
}

func TestACrashBringsBackTheUnfinishedSuffix(t *testing.T) {
	q := openAt(t, start(t), topicFor(t), session)
	publish(t, q, messages(6, "k")...)
	c := consumerOf(t, q)
	ds := receive(t, c, 6)
	ack(t, c, ds[3])
	ack(t, c, ds[1], ds[0])
	c.vanish()
	next := consumerOf(t, q)
	got := receive(t, next, 4)
	if diff := cmp.Diff([]string{"2", "3", "4", "5"}, idsOf(got)); diff != "" {
		t.Errorf("after acks of 3, 1 and 0 (-want +got):\n%s", diff)
	}
	ack(t, next, got...)
	receiveNothing(t, next)
}

func TestCloseLeavesTheGroupAtOnce(t *testing.T) {
	q := openAt(t, start(t), topicFor(t), "session=25s", "max-wait=20s")
	publish(t, q, messages(3, "k")...)
	c := consumerOf(t, q)
	ds := receive(t, c, 3)
	ack(t, c, ds[0])
	begin := time.Now()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	closed := time.Since(begin)
	got := receive(t, consumerOf(t, q), 2) // patience is no longer than the session
	t.Logf("closed in %v, delivered again %v after the call", closed, time.Since(begin))
	if diff := cmp.Diff([]string{"1", "2"}, idsOf(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if time.Since(begin) > 15*time.Second {
		t.Errorf("delivered again after %v: the successor waited for the session or for the fetch", time.Since(begin))
	}
}

func TestARebalanceTakesAwayOnlyWhatMoves(t *testing.T) {
	q := openAt(t, start(t), topicFor(t), session, "partitions=4")
	publish(t, q, messages(40, "")...)
	first := consumerOf(t, q)
	ds := receive(t, first, 40)
	var done, held []*queue.Delivery
	for i, d := range ds {
		if i%2 == 0 {
			done = append(done, d)
		} else {
			held = append(held, d)
		}
	}
	ack(t, first, done...)
	second := consumerOf(t, q)

	moved := map[int]bool{}
	second.mu.Lock()
	for _, p := range second.current.parts {
		moved[p.id] = true
	}
	second.mu.Unlock()
	if len(moved) != 2 {
		t.Fatalf("the second consumer got %d of 4 partitions, want 2", len(moved))
	}
	var stay, gone, want []string
	for _, d := range held {
		p := d.Receipt().(*receipt).part.id
		switch err := first.Ack(t.Context(), d); {
		case err == nil:
			stay = append(stay, d.ID)
			if moved[p] {
				t.Errorf("message %s of partition %d, which moved: got nil, want ErrLeaseLost", d.ID, p)
			}
		case errors.Is(err, queue.ErrLeaseLost):
			gone = append(gone, d.ID)
			if !moved[p] {
				t.Errorf("message %s of partition %d, which stayed: got %v, want nil", d.ID, p, err)
			}
		default:
			t.Errorf("message %s: %v", d.ID, err)
		}
	}
	if len(stay) == 0 || len(gone) == 0 {
		t.Errorf("got %d acked and %d lost, want some of each", len(stay), len(gone))
	}
	// Of a partition that moved comes again what is not in its finished prefix.
	for p := range moved {
		var of []*queue.Delivery
		for _, d := range ds {
			if d.Receipt().(*receipt).part.id == p {
				of = append(of, d)
			}
		}
		for len(of) > 0 && slices.Contains(done, of[0]) {
			of = of[1:]
		}
		want = append(want, idsOf(of)...)
	}
	slices.Sort(want)
	again := receive(t, second, len(want))
	if diff := cmp.Diff(want, idsOf(again)); diff != "" {
		t.Errorf("delivered again (-want +got):\n%s", diff)
	}
	ack(t, second, again...)
	receiveNothing(t, first)
	receiveNothing(t, second)
	if b, err := q.Backlog(t.Context()); err != nil || b.Ready != 0 {
		t.Errorf("backlog: got %+v and %v, want none", b, err)
	}
}

func TestWhatIsSettledDuringARebalanceDoesNotComeAgain(t *testing.T) {
	q := openAt(t, start(t), topicFor(t), session, "partitions=4")
	publish(t, q, messages(40, "")...)
	first := consumerOf(t, q)
	ds := receive(t, first, 40)
	first.mu.Lock()
	g := first.current
	first.mu.Unlock()

	joined := make(chan *consumer)
	go func() { joined <- consumerOf(t, q) }()
	await(t, "the first generation ends", &first.mu, func() bool { return g.stopped })
	ack(t, first, ds...)
	second := <-joined
	receiveNothing(t, first)
	receiveNothing(t, second)
}

func TestAStaleGenerationCommitsNothing(t *testing.T) {
	// As if the consumer had not heard of a rebalance: the broker must refuse.
	q := openAt(t, start(t), topicFor(t), session, "partitions=1")
	publish(t, q, messages(3, "k")...)
	c := consumerOf(t, q)
	d := receive(t, c, 3)
	c.mu.Lock()
	switch d := c.current.deal.committer.(type) {
	case kafkaGoCommitter:
		d.gen.ID--
	case *franzCommitter:
		d.generation--
	}
	c.mu.Unlock()
	if err := c.Ack(t.Context(), d...); !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("ack with an old generation: got %v, want ErrLeaseLost", err)
	}
	spans, err := q.spans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := spans[0].committed; got != -1 {
		t.Errorf("got offset %d committed, want none", got)
	}
}

func TestOneSlowMessageHoldsUpABoundedNumber(t *testing.T) {
	q := openAt(t, start(t), topicFor(t), session, "partitions=2", "prefetch=4", "max-uncommitted=5")
	slow, fast := "a", "b"
	for keyPartition(fast, 2) == keyPartition(slow, 2) {
		fast += "b"
	}
	publish(t, q, messages(30, slow)...)
	c := consumerOf(t, q)
	first := receive(t, c, 1)[0]
	for range 5 {
		ack(t, c, receive(t, c, 1)...)
	}
	receiveNothing(t, c)
	publish(t, q, queue.Message{ID: "other", Key: fast})
	other := receive(t, c, 1)
	if other[0].ID != "other" {
		t.Errorf("got %s, want the message of the other partition, which nothing holds up", other[0].ID)
	}
	ack(t, c, other...)
	ack(t, c, first)
	ack(t, c, receive(t, c, 24)...)
	receiveNothing(t, c)
}

func TestATooLargeMessageIsRejectedAlone(t *testing.T) {
	b := start(t)
	for _, acks := range []string{"all", "1", "0"} {
		q := openAt(t, b, topicFor(t), session, "partitions=1", "acks="+acks, "fetch-bytes=1024")
		ms := messages(3, "k")
		ms[0].Body = make([]byte, 900_000)
		ms[1].Body = make([]byte, 2_000_000)
		err := publisherOf(t, q).Publish(t.Context(), ms...)
		var got []queue.Outcome
		for i := range ms {
			got = append(got, queue.OutcomeOf(err, i))
		}
		if diff := cmp.Diff([]queue.Outcome{queue.Accepted, queue.Rejected, queue.Accepted}, got); diff != "" {
			t.Errorf("acks=%s: outcomes (-want +got):\n%s", acks, diff)
		}
		if !errors.Is(err, queue.ErrRejected) || !errors.Is(err, kafkago.MessageSizeTooLarge) {
			t.Errorf("acks=%s: got %v, want ErrRejected and why", acks, err)
		}
		c := consumerOf(t, q)
		ds := receive(t, c, 2) // one of them is larger than a fetch
		if diff := cmp.Diff([]string{"0", "2"}, idsOf(ds)); diff != "" {
			t.Errorf("acks=%s: delivered (-want +got):\n%s", acks, diff)
		}
		if len(ds[0].Body) != 900_000 {
			t.Errorf("acks=%s: got a body of %d bytes, want 900000", acks, len(ds[0].Body))
		}
	}
}

func TestAPublishThatGivesUpKnowsWhatWasNotSent(t *testing.T) {
	b := start(t)
	q := openAt(t, b, topicFor(t), session, "partitions=1")
	p := publisherOf(t, q)
	if err := p.Publish(t.Context(), queue.Message{ID: "first"}); err != nil {
		t.Fatal(err)
	}
	thaw := freeze(t, b)
	sent, waits := make(chan error), make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { sent <- p.Publish(ctx, queue.Message{ID: "sent"}) }()
	l := p.(*publisher).onlyLane(t)
	await(t, "a message is under way", &l.mu, func() bool { return l.running && len(l.waiting) == 0 })
	go func() { waits <- p.Publish(ctx, queue.Message{ID: "waits"}) }()
	await(t, "a message waits", &l.mu, func() bool { return len(l.waiting) == 1 })
	cancel()
	errSent, errWaits := <-sent, <-waits
	thaw()
	if got := queue.OutcomeOf(errSent, 0); got != queue.Unknown || !errors.Is(errSent, context.Canceled) {
		t.Errorf("the message under way: got %v, %v, want unknown", got, errSent)
	}
	if got := queue.OutcomeOf(errWaits, 0); got != queue.Rejected || !errors.Is(errWaits, context.Canceled) {
		t.Errorf("the message that waited: got %v, %v, want rejected", got, errWaits)
	}
	if err := p.Publish(t.Context(), queue.Message{ID: "last"}); err != nil {
		t.Fatal(err)
	}
	ids := idsOf(receive(t, consumerOf(t, q), 3))
	if diff := cmp.Diff([]string{"first", "last", "sent"}, ids); diff != "" {
		t.Errorf("in the topic (-want +got):\n%s", diff)
	}
}

func (p *publisher) onlyLane(t *testing.T) *lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lanes) != 1 {
		t.Fatalf("got %d lanes, want 1", len(p.lanes))
	}
	for _, l := range p.lanes {
		return l
	}
	return nil
}

func TestATopicMadeAgainIsConsumedFromItsFirstMessage(t *testing.T) {
	b := start(t)
	name := topicFor(t)
	q := openAt(t, b, name, session, "partitions=1")
	publish(t, q, messages(5, "k")...)
	c := consumerOf(t, q)
	ack(t, c, receive(t, c, 5)...)
	if err := q.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := openAt(t, b, name, session, "partitions=1")
	publish(t, again, queue.Message{ID: "new"})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		ds, err := c.Receive(ctx, 1)
		if ctx.Err() != nil {
			t.Fatalf("the message did not come; the last error is %v", err)
		}
		if err != nil {
			continue // the topic was away
		}
		if ds[0].ID != "new" {
			t.Errorf("got %s, want the new message", ds[0].ID)
		}
		break
	}
}

func TestTheBacklogOfAGroupThatNeverWasIsEverything(t *testing.T) {
	q := openAt(t, start(t), topicFor(t))
	publish(t, q, messages(9, "")...)
	if b, err := q.Backlog(t.Context()); err != nil || b.Ready != 9 {
		t.Errorf("got %+v and %v, want 9 ready", b, err)
	}
}

func TestDeleteOfWhatIsNotThereIsNoError(t *testing.T) {
	q := openAt(t, start(t), topicFor(t))
	for range 2 {
		if err := q.Delete(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestSettingsOfATopicThatExistsMustFit(t *testing.T) {
	b := start(t)
	name := topicFor(t)
	q := openAt(t, b, name, "partitions=3", "flush=1")
	if got := q.Capabilities().Confirm; got != queue.ConfirmDisk {
		t.Errorf("flush=1: got confirm by %v, want disk", got)
	}
	if got := openAt(t, b, name); got.facts.partitions != 3 || !got.facts.flushEach {
		t.Errorf("got %+v, want what the topic has", got.facts)
	}
	plain := topicFor(t)
	openAt(t, b, plain)
	for _, c := range []struct{ topic, params, want string }{
		{name, "partitions=4", "has 3 partitions, not 4"},
		{name, "replication=2", "has 1 replicas, not 2"},
		{plain, "flush=1", "without flush.messages=1"},
		{topicFor(t), "replication=3", "replication factor"},
	} {
		checkOpenFails(t, b.QueueURL("kafka", c.topic, c.params), c.want)
	}
}

func TestASessionThatTheBrokerRefusesIsSaidSo(t *testing.T) {
	q := openAt(t, start(t), topicFor(t), "session=200ms")
	if _, err := q.Consumer(t.Context()); err == nil || !strings.Contains(err.Error(), "group.min.session.timeout.ms") {
		t.Errorf("got %v, want the broker's setting named", err)
	}
}

func TestWhoeverIsNotAKafkaBrokerIsNamed(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			defer conn.Close()
		}
	}()
	addr := ln.Addr().String()
	checkOpenFails(t, "kafka://"+addr+"/orders", addr+" does not answer like a Kafka broker")
	_ = ln.Close()
	<-done
	checkOpenFails(t, "kafka://"+addr+"/orders", "no broker can be reached at "+addr)
}

func checkOpenFails(t *testing.T, raw, want string) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	q, err := Open(t.Context(), u)
	if err == nil {
		_ = q.Close()
	}
	if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: got error %v, want one sentence that says %q", u.Redacted(), err, want)
	}
}
