package redisstreams

import (
	"errors"
	"net/url"
	"testing"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/redistest"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

// A consumer can be the next to get what it gave back, and hear of that before the
// answer to its nack is here. It must not take that for what it holds already: it
// would stay pending for a lease.

// taken is a consumer, and the one message that it has received from url.
func taken(t *testing.T, raw string) (*consumer, *queue.Delivery) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	q, err := Open(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	c, p := redistest.Both(t, q)
	if err := p.Publish(t.Context(), queue.Message{ID: "1", Key: "k"}); err != nil {
		t.Fatal(err)
	}
	return c.(*consumer), redistest.Take(t, c, 1)[0]
}

func TestWhatIsGivenBackComesAgainBeforeItsNackIsAnswered(t *testing.T) {
	proxy := redistest.NewProxy(t, brokertest.Start(t, "redis", "no-persistence"))
	c, d := taken(t, proxy.URL(redistest.Backend{Scheme: "redis+streams"}, "late", "claim=1h"))
	if err := c.Nack(t.Context(), d); err != nil { // the server has the script now
		t.Fatal(err)
	}
	d = redistest.Take(t, c, 1)[0]
	there, release := proxy.LateReply(nackScript.Hash())
	t.Cleanup(release) // before the queue is closed
	again := redistest.Taking(t, c, 1)
	nacked := make(chan error, 1)
	go func() { nacked <- c.Nack(t.Context(), d) }()
	<-there
	got := <-again // within 10 s, or it has failed
	release()
	if err := <-nacked; err != nil {
		t.Errorf("nack: %v", err)
	}
	if len(got) != 1 || got[0].Attempt != 3 {
		t.Fatalf("got %v, want the message at attempt 3", got)
	}
	if err := c.Ack(t.Context(), got...); err != nil {
		t.Errorf("ack: %v", err)
	}
	if n := c.client.XPending(t.Context(), c.q.stream, c.q.group).Val().Count; n != 0 {
		t.Errorf("pending in the end: got %d, want 0", n)
	}
}

// unanswered is a consumer with one entry in hand, which the server has given back
// already.
func unanswered(t *testing.T, name string) (*consumer, *entry) {
	t.Helper()
	server := brokertest.Start(t, "redis", "no-persistence")
	c, _ := taken(t, server.QueueURL("redis+streams", name, "claim=1h"))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.hand {
		e.nacked = true
		c.do(t, nackScript, e.id)
		return c, e
	}
	t.Fatal("nothing is in hand")
	return nil, nil
}

func (c *consumer) do(t *testing.T, s *redis.Script, args ...any) {
	t.Helper()
	if err := s.Run(t.Context(), c.client, c.q.keys(), append([]any{c.q.group, c.name}, args...)...).Err(); err != nil {
		t.Fatal(err)
	}
}

// only fails unless the one delivery is another of e, which then settles nothing.
func (c *consumer) only(t *testing.T, e *entry, es []*entry, err error) {
	t.Helper()
	if err != nil || len(es) != 1 || es[0] == e || es[0].id != e.id {
		t.Fatalf("got %v, %v, want one new delivery of %s", es, err, e.id)
	}
	errs := make([]error, 1)
	if c.settle(opAck, []*entry{e}, errs); !errors.Is(errs[0], queue.ErrLeaseLost) {
		t.Errorf("ack of the old delivery: got %v, want ErrLeaseLost", errs[0])
	}
	if c.settle(opAck, es, errs); errs[0] != nil {
		t.Errorf("ack of the new delivery: %v", errs[0])
	}
}

func TestWhatIsGivenBackIsClaimedBeforeItsNackIsAnswered(t *testing.T) {
	c, e := unanswered(t, "claimed")
	es, err := c.takeOver(10)
	c.only(t, e, es, err)
}

func TestWhatIsInHandAndIdleIsNotClaimedFromOneself(t *testing.T) {
	c, e := unanswered(t, "idle")
	e.nacked = false
	// As if it had never been given back, and the keeper had not come to it.
	idle := 2 * c.q.claim.Milliseconds()
	if err := c.client.Do(t.Context(), "xclaim", c.q.stream, c.q.group, c.name, 0, e.id, "idle", idle, "justid").Err(); err != nil {
		t.Fatal(err)
	}
	if es, err := c.takeOver(10); err != nil || len(es) > 0 {
		t.Errorf("got %v, %v, want nothing: it is in hand", es, err)
	}
}

func TestWhatWasTakenByALostReplyIsReadAgainOnceItsNackIsAnswered(t *testing.T) {
	c, e := unanswered(t, "lost")
	c.do(t, takeScript, 10) // nobody was told what it took
	c.rereadAt = "-"
	es, err := c.reread(10)
	if err != nil || len(es) > 0 || c.rereadAt != "-" {
		t.Fatalf("before the answer: got %v, %v, to be read again at %q, want nothing, at -", es, err, c.rereadAt)
	}
	c.mu.Lock()
	c.drop(e)
	e.lost = true // its receipt is used up
	c.mu.Unlock()
	es, err = c.reread(10)
	c.only(t, e, es, err)
	if c.rereadAt != "" {
		t.Errorf("after the answer: to be read again at %q, want not at all", c.rereadAt)
	}
}
