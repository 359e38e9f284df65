package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"queuelab/queue"
)

func TestAMessageWithoutAQueueIsRejectedThoughTheBrokerAcksIt(t *testing.T) {
	q := open(t)
	p := newPublisher(t, q)
	publish(t, p, messages("routed", 1)...)
	if err := q.administer(soon(t), "delete", func(ch *amqp.Channel) error {
		_, err := ch.QueueDelete(q.queue, false, false, false)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	ms := messages("lost", 50)
	err := p.Publish(soon(t), ms...)
	for i := range ms {
		if o := queue.OutcomeOf(err, i); o != queue.Rejected {
			t.Fatalf("message %d: got %v, want rejected: %v", i, o, err)
		}
	}
	if !errors.Is(err, queue.ErrRejected) || !strings.Contains(err.Error(), "NO_ROUTE") {
		t.Errorf("got error %v, want ErrRejected with the broker's NO_ROUTE", err)
	}

	// A return belongs to one message, not to its id: the same id is accepted
	// once there is a queue again.
	c := newConsumer(t, q)
	publish(t, p, ms...)
	take(t, c, 50)
}

func TestADeletedExchangeIsNeverAccepted(t *testing.T) {
	q := open(t)
	p := newPublisher(t, q)
	if err := q.Delete(soon(t)); err != nil {
		t.Fatal(err)
	}
	if err := q.Delete(soon(t)); err != nil {
		t.Errorf("deleting what is not there: %v", err)
	}
	ms := messages("m", 10)
	if err := p.Publish(soon(t), ms...); err == nil {
		t.Error("got nil for a publish to a deleted exchange")
	}
	// The channel died of it; the next one brings the topology back.
	eventually(t, "publishing works again", func() bool {
		return p.Publish(soon(t), messages("again", 1)...) == nil
	})
}

func TestEveryConfirmFindsItsMessage(t *testing.T) {
	for _, kind := range []string{"classic", "quorum"} {
		t.Run(kind, func(t *testing.T) {
			q := open(t, "type="+kind, "window=100")
			p := newPublisher(t, q)
			const publishers, each = 8, 1000
			var wg sync.WaitGroup
			for g := range publishers {
				wg.Go(func() {
					for i, m := range messages(fmt.Sprint("g", g), each) {
						if g%2 == 0 { // one by one, and in batches
							if err := p.Publish(soon(t), m); err != nil {
								t.Errorf("message %d of %d: %v", i, g, err)
								return
							}
						} else if i%50 == 0 {
							if err := p.Publish(soon(t), messages(fmt.Sprint("g", g, "b", i), 50)...); err != nil {
								t.Errorf("batch %d of %d: %v", i, g, err)
								return
							}
						}
					}
				})
			}
			wg.Wait()
			eventually(t, "all 8000 are in the queue", func() bool { return ready(t, q) == publishers*each })
		})
	}
}

func TestACutMidPublishIsUnknownNeverRejected(t *testing.T) {
	px := newProxy(t)
	direct := open(t)
	q := openAt(t, px.url(), "queue="+nameOf(t))
	p := newPublisher(t, q)
	publish(t, p, messages("before", 1)...)

	px.mute(true)
	ms := messages("cut", 200)
	result := make(chan error, 1)
	go func() { result <- p.Publish(soon(t), ms...) }()
	// The broker has them all, and its confirms are held back: the library will
	// say that they were nacked.
	eventually(t, "the broker has the messages", func() bool { return ready(t, direct) == 201 })
	px.cut()
	err := <-result
	for i := range ms {
		if o := queue.OutcomeOf(err, i); o != queue.Unknown {
			t.Fatalf("message %d: got %v, want unknown: %v", i, o, err)
		}
	}
	if errors.Is(err, queue.ErrRejected) {
		t.Errorf("got %v, which claims a rejection", err)
	}
	publish(t, p, messages("after", 10)...) // on a connection of its own
}

func TestCutsUnderLoadNeverRejectWhatTheBrokerHas(t *testing.T) {
	px := newProxy(t)
	direct := open(t)
	q := openAt(t, px.url(), "queue="+nameOf(t)+"&window=50")
	p := newPublisher(t, q)
	var mu sync.Mutex
	accepted, rejected := map[string]bool{}, map[string]bool{}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				ms := messages(fmt.Sprintf("g%d-%d", g, n), 20)
				err := p.Publish(soon(t), ms...)
				mu.Lock()
				for i, m := range ms {
					switch queue.OutcomeOf(err, i) {
					case queue.Accepted:
						accepted[m.ID] = true
					case queue.Rejected:
						rejected[m.ID] = true
					}
				}
				mu.Unlock()
			}
		})
	}
	for range 5 {
		mu.Lock()
		n := len(accepted)
		mu.Unlock()
		eventually(t, "publishing goes on", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(accepted) >= n+300
		})
		px.cut()
	}
	close(stop)
	wg.Wait()

	c := newConsumer(t, direct)
	for len(accepted) > 0 {
		ds := take(t, c, 1)
		for _, d := range ds {
			if rejected[d.ID] {
				t.Fatalf("%s was rejected and is in the queue", d.ID)
			}
			delete(accepted, d.ID)
		}
		if err := c.Ack(soon(t), ds...); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPublishLeavesWithItsContextAndSaysUnknown(t *testing.T) {
	px := newProxy(t)
	open(t)
	q := openAt(t, px.url(), "queue="+nameOf(t)+"&window=10&channels=1")
	p := newPublisher(t, q)
	publish(t, p, messages("before", 1)...)
	px.mute(true)

	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	err := p.Publish(ctx, messages("m", 40)...)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want the context's error", err)
	}
	// The window lets ten out; no byte of the others was written, nor will be.
	for i := range 40 {
		want := queue.Unknown
		if i >= 10 {
			want = queue.Rejected
		}
		if o := queue.OutcomeOf(err, i); o != want {
			t.Errorf("message %d: got %v, want %v", i, o, want)
		}
	}
	px.mute(false)
	publish(t, p, messages("after", 20)...)
	eventually(t, "what was rejected never comes", func() bool { return ready(t, q) == 1+10+20 })
}

func TestTheConfirmTimeoutBoundsAPublish(t *testing.T) {
	px := newProxy(t)
	open(t)
	q := openAt(t, px.url(), "queue="+nameOf(t)+"&confirm-timeout=200ms")
	p := newPublisher(t, q)
	px.mute(true)
	err := p.Publish(soon(t), messages("m", 1)...)
	if queue.OutcomeOf(err, 0) != queue.Unknown || !strings.Contains(fmt.Sprint(err), "200ms") {
		t.Errorf("got %v, want unknown after 200ms", err)
	}
	px.mute(false)
}

func TestABlockedConnectionHoldsNobodyBeyondItsContext(t *testing.T) {
	q := open(t)
	p := newPublisher(t, q)
	publish(t, p, messages("before", 1)...)
	live, err := p.link.get(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	// What the library would say under a memory alarm, which cannot be raised
	// over AMQP, is told to a session of its own, whose gate the live one gets.
	told := &session{done: make(chan struct{})}
	told.gate.Store(live.gate.Load())
	closes, blocks := make(chan *amqp.Error), make(chan amqp.Blocking, 1)
	go told.watch(closes, blocks)
	defer func() { close(closes); <-told.done }()
	blocks <- amqp.Blocking{Active: true, Reason: "low on memory"}
	eventually(t, "the gate is shut", func() bool { return told.gate.Load() != live.gate.Load() })
	live.gate.Store(told.gate.Load())

	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	err = p.Publish(ctx, messages("held", 5)...)
	if !errors.Is(err, context.DeadlineExceeded) || queue.OutcomeOf(err, 0) != queue.Rejected {
		t.Errorf("got %v, want the context's error, and rejected: nothing was written", err)
	}
	blocks <- amqp.Blocking{Active: false}
	publish(t, p, messages("after", 3)...)
	eventually(t, "only what was not held is there", func() bool { return ready(t, q) == 4 })
}

func TestWithoutABrokerAPublishIsRejectedAndHeals(t *testing.T) {
	px := newProxy(t)
	open(t)
	q := openAt(t, px.url(), "queue="+nameOf(t))
	p := newPublisher(t, q)
	publish(t, p, messages("before", 1)...)
	target := px.setTarget("127.0.0.1:1")
	px.cut()
	eventually(t, "publishing is rejected", func() bool {
		err := p.Publish(soon(t), messages("m", 3)...)
		return queue.OutcomeOf(err, 0) == queue.Rejected && queue.OutcomeOf(err, 2) == queue.Rejected
	})
	px.setTarget(target)
	eventually(t, "publishing works again", func() bool { return p.Publish(soon(t), messages("after", 1)...) == nil })
}

func TestWhatDoesNotFitIsRejectedAndNothingElse(t *testing.T) {
	q := open(t)
	p := newPublisher(t, q)
	c := newConsumer(t, q)
	long := strings.Repeat("x", 256)
	fits := queue.Message{ID: long[:255], Key: "ключ 鍵 \x00", Headers: map[string]string{long[:255]: strings.Repeat("v", 100_000), "": "", "key": "k", "x-death": "no"}, Body: []byte{0, 255}}
	ms := []queue.Message{
		{ID: long},
		fits,
		{ID: ""},
		{ID: "a", Headers: map[string]string{long: ""}},
		{ID: "b", Key: strings.Repeat("k", 140_000)},
		{ID: "c"},
	}
	err := p.Publish(soon(t), ms...)
	for i, want := range []queue.Outcome{queue.Rejected, queue.Accepted, queue.Rejected, queue.Rejected, queue.Rejected, queue.Accepted} {
		if o := queue.OutcomeOf(err, i); o != want {
			t.Errorf("message %d: got %v, want %v: %v", i, o, want, err)
		}
	}
	got := map[string]queue.Message{}
	for _, d := range take(t, c, 2) {
		got[d.ID] = d.Message
	}
	if diff := cmpMessages(fits, got[fits.ID]); diff != "" {
		t.Errorf("a message changed on its way (-want +got):\n%s", diff)
	}
}
