package redissharded_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/redistest"
	"queuelab/backends/redissharded"
	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

func server(t *testing.T) *broker.Broker { return brokertest.Start(t, "redis", "no-persistence") }

func publisher(t *testing.T, q queue.Queue) queue.Publisher {
	t.Helper()
	p, err := q.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func consumer(t *testing.T, q queue.Queue) queue.Consumer {
	t.Helper()
	c, err := q.Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// publish sends messages 1 to n of each key, in turn.
func publish(t *testing.T, p queue.Publisher, keys, n int) {
	t.Helper()
	for i := range n {
		for k := range keys {
			key := fmt.Sprint("k", k)
			if err := p.Publish(t.Context(), queue.Message{ID: fmt.Sprint(key, "-", i+1), Key: key}); err != nil {
				t.Fatalf("publish: %v", err)
			}
		}
	}
}

// shares is how many partitions each consumer has, by the broker's books.
func shares(t *testing.T, look *redis.Client, name string) map[string]int {
	t.Helper()
	all, err := look.HGetAll(t.Context(), "sharded:{"+name+"}:owners:workers").Result()
	if err != nil {
		t.Fatal(err)
	}
	shares := map[string]int{}
	for field, token := range all {
		if field != "epoch" {
			shares[strings.Fields(token)[0]]++
		}
	}
	return shares
}

// One stream with a group hands the messages of a key to whoever asks. Here they
// stay in order, over consumers that come and go.
func TestAKeyKeepsItsOrderOverCompetingConsumersThatComeAndGo(t *testing.T) {
	const keys = 12
	q := backend.Queue(t, server(t), "order", "claim=1s&partitions=5&count=3")
	p := publisher(t, q)
	var mu sync.Mutex
	got, by := map[string][]string{}, map[queue.Consumer]bool{}
	total := 0
	handle := func(ctx context.Context, c queue.Consumer) {
		for {
			ds, err := c.Receive(ctx, 4)
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("receive: %v", err)
				}
				return
			}
			mu.Lock()
			for _, d := range ds {
				got[d.Key] = append(got[d.Key], d.ID)
				total++
				by[c] = true
			}
			mu.Unlock()
			time.Sleep(2 * time.Millisecond) // what is in hand is what a hand-over could get wrong
			if err := c.Ack(context.Background(), ds...); err != nil {
				t.Errorf("ack: %v", err)
				return
			}
		}
	}
	seen := func() int {
		mu.Lock()
		defer mu.Unlock()
		return total
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	first, second := consumer(t, q), consumer(t, q)
	leaving, leave := context.WithCancel(ctx)
	defer leave()
	wg.Go(func() { handle(ctx, first) })
	gone := make(chan struct{})
	go func() { handle(leaving, second); close(gone) }()
	// Messages come for as long as consumers do, a few at a time.
	each, enough, sent := 0, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sent)
		for {
			select {
			case <-enough:
				return
			default:
			}
			each++
			for k := range keys {
				key := fmt.Sprint("k", k)
				if err := p.Publish(ctx, queue.Message{ID: fmt.Sprint(key, "-", each), Key: key}); err != nil {
					if ctx.Err() == nil {
						t.Errorf("publish: %v", err)
					}
					return
				}
			}
			for limit := time.Now().Add(10 * time.Second); seen() < keys*(each-4) && time.Now().Before(limit); {
				time.Sleep(time.Millisecond)
			}
		}
	}()
	look := redistest.Client(t, server(t))
	have := func(n int) {
		t.Helper()
		redistest.Eventually(t, fmt.Sprintf("%d consumers have partitions", n), func() bool { return len(shares(t, look, "order")) == n })
		from := seen()
		redistest.Eventually(t, "messages come", func() bool { return seen() > from+10*keys })
	}
	have(2)
	third := consumer(t, q)
	wg.Go(func() { handle(ctx, third) })
	have(3)
	leave()
	<-gone
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	have(2)
	close(enough)
	<-sent
	redistest.Eventually(t, "all are handled", func() bool { return seen() >= keys*each })
	cancel()
	wg.Wait()
	want := map[string][]string{}
	for k := range keys {
		for i := range each {
			key := fmt.Sprint("k", k)
			want[key] = append(want[key], fmt.Sprint(key, "-", i+1))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys were handled in another order than published, or twice (-published +handled):\n%s", diff)
	}
	if len(by) != 3 {
		t.Errorf("got messages at %d consumers, want all three to compete", len(by))
	}
}

func TestPartitionsAreSharedAndIdleConsumersHaveNone(t *testing.T) {
	q := backend.Queue(t, server(t), "shares", "claim=1s&partitions=3")
	look := redistest.Client(t, server(t))
	var cs []queue.Consumer
	for _, want := range []string{"[3]", "[1 2]", "[1 1 1]", "[1 1 1]"} {
		cs = append(cs, consumer(t, q))
		redistest.Eventually(t, fmt.Sprintf("%d consumers have %s partitions", len(cs), want), func() bool {
			var n [4]int
			for _, s := range shares(t, look, "shares") {
				n[s]++
			}
			var sorted []int
			for s := 1; s < 4; s++ {
				for range n[s] {
					sorted = append(sorted, s)
				}
			}
			return fmt.Sprint(sorted) == want
		})
	}
	for _, c := range cs[:3] {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	redistest.Eventually(t, "the last one has all", func() bool {
		s := shares(t, look, "shares")
		for _, n := range s {
			return len(s) == 1 && n == 3
		}
		return false
	})
}

// A consumer whose process stops for longer than its lease cannot renew it.
func TestALeaseThatRanOutMovesWhatIsUnsettledInOrder(t *testing.T) {
	proxy := redistest.NewProxy(t, server(t))
	slow := consumer(t, backend.At(t, proxy.URL(backend, "moves", "claim=1s&partitions=1&timeout=500ms")))
	q := backend.Queue(t, server(t), "moves", "claim=1s")
	p := publisher(t, q)
	publish(t, p, 1, 4)
	held := redistest.Take(t, slow, 3)
	proxy.Silence(true)
	next := consumer(t, q)
	got := redistest.Take(t, next, 4)
	for i, d := range got {
		if want := fmt.Sprint("k0-", i+1); d.ID != want {
			t.Errorf("delivery %d to the next owner: got %s, want %s", i+1, d.ID, want)
		}
	}
	if err := next.Ack(t.Context(), got[0]); err != nil {
		t.Fatal(err)
	}
	proxy.Silence(false)
	redistest.Eventually(t, "the late ack is refused", func() bool {
		return errors.Is(slow.Ack(t.Context(), held[1]), queue.ErrLeaseLost)
	})
	if err := next.Ack(t.Context(), got[1:]...); err != nil {
		t.Errorf("ack by the owner: %v", err)
	}
}

func TestALostReplyToAReadIsReadAgain(t *testing.T) {
	proxy := redistest.NewProxy(t, server(t))
	q := backend.At(t, proxy.URL(backend, "lostread", "claim=1h"))
	c := consumer(t, q)
	publish(t, publisher(t, backend.Queue(t, server(t), "lostread", "")), 1, 1)
	held := redistest.Take(t, c, 1) // must not come again with the others
	publish(t, publisher(t, backend.Queue(t, server(t), "lostread", "")), 2, 3)
	proxy.LoseReply("xreadgroup")
	if ds, err := c.Receive(t.Context(), 3); err == nil {
		t.Fatalf("receive whose reply is lost: got %d deliveries, want an error", len(ds))
	}
	ds := redistest.Take(t, c, 6)
	if err := c.Ack(t.Context(), append(ds, held...)...); err != nil {
		t.Errorf("ack: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if more, err := c.Receive(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %d more and %v, want none", len(more), err)
	}
	if b, err := q.(queue.Backlogger).Backlog(t.Context()); err != nil || b.Ready != 0 || b.InFlight != 0 {
		t.Errorf("backlog: got %+v, %v, want none", b, err)
	}
}

// What a stale read has left pending is in nobody's hand, and comes all the same.
func TestWhatIsPendingInNobodysHandComesWithinALease(t *testing.T) {
	q := backend.Queue(t, server(t), "stale", "claim=1s&partitions=1")
	c := consumer(t, q)
	p := publisher(t, q)
	publish(t, p, 1, 1)
	if err := c.Ack(t.Context(), redistest.Take(t, c, 1)...); err != nil {
		t.Fatal(err)
	}
	look := redistest.Client(t, server(t))
	publish(t, p, 1, 1)
	stolen, err := look.XReadGroup(t.Context(), &redis.XReadGroupArgs{
		Group: "workers", Consumer: "owner", Streams: []string{"sharded:{stale}:0", ">"}, Count: 1, Block: -1,
	}).Result()
	if err != nil || len(stolen) != 1 {
		t.Fatalf("a read by nobody: got %v, %v", stolen, err)
	}
	if err := c.Ack(t.Context(), redistest.Take(t, c, 1)...); err != nil {
		t.Error(err)
	}
}

func TestThePartitionsOfAQueueAreAgreedOn(t *testing.T) {
	backend.Queue(t, server(t), "agreed", "partitions=3")
	_, err := backend.Try(server(t).QueueURL(backend.Scheme, "agreed", "partitions=5"))
	if err == nil || !strings.Contains(err.Error(), "has 3 partitions, not 5") {
		t.Errorf("another number: got %v, want an error that names both", err)
	}
	backend.Queue(t, server(t), "agreed", "")
}

func TestPartitionsThatAreGoneAreCreatedAgain(t *testing.T) {
	q := backend.Queue(t, server(t), "gone", "claim=1s")
	c := consumer(t, q)
	p := publisher(t, q)
	look := redistest.Client(t, server(t))
	if err := look.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	told := false
	publish(t, p, 8, 1)
	n := 0
	redistest.Eventually(t, "all come", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ds, err := c.Receive(ctx, 10)
		told = told || errors.Is(err, redissharded.ErrRecreated)
		n += len(ds)
		return n >= 8
	})
	if !told || n != 8 {
		t.Errorf("got %d messages, told %v, want 8 and ErrRecreated", n, told)
	}
}

func TestWhatIsAckedIsTrimmed(t *testing.T) {
	q := backend.Queue(t, server(t), "trim", "claim=1s&partitions=2&trim=10ms&count=1000")
	c := consumer(t, q)
	p := publisher(t, q)
	publish(t, p, 8, 150)
	ds := redistest.Take(t, c, 1200)
	look := redistest.Client(t, server(t))
	length := func() (n int64) {
		for i := range 2 {
			n += look.XLen(t.Context(), fmt.Sprintf("sharded:{trim}:%d", i)).Val()
		}
		return n
	}
	if n := length(); n != 1200 {
		t.Errorf("before any ack: got %d entries, want all 1200", n)
	}
	if err := c.Ack(t.Context(), ds...); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "all is trimmed but for a node of each", func() bool { return length() <= 200 })
	if b, err := q.(queue.Backlogger).Backlog(t.Context()); err != nil || b.Ready != 0 || b.InFlight != 0 {
		t.Errorf("backlog: got %+v, %v, want none", b, err)
	}
}
