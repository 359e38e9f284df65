package rabbitmq

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"queuelab/queue"
)

func cmpMessages(want, got queue.Message) string { return cmp.Diff(want, got) }

func TestALateAckAfterACutIsALostLease(t *testing.T) {
	px := newProxy(t)
	direct := open(t)
	q := openAt(t, px.url(), "queue="+nameOf(t))
	publish(t, newPublisher(t, q), messages("m", 5)...)
	c := newConsumer(t, q)
	old := take(t, c, 5)
	px.cut()

	// The next Receive may report the cut, and the one after that reconnects.
	var again []*queue.Delivery
	eventually(t, "all come again", func() bool {
		ds, err := c.Receive(soon(t), 10)
		if err != nil {
			t.Log("after the cut:", err)
		}
		again = append(again, ds...)
		return len(again) == 5
	})
	for i, d := range again {
		if d.Attempt != 2 {
			t.Errorf("delivery %d: got attempt %d, want 2", i, d.Attempt)
		}
	}
	// Tags begin anew with a channel: an ack by number alone would settle the
	// first of these.
	err := c.Ack(soon(t), old...)
	if !errors.Is(err, queue.ErrLeaseLost) || errors.Is(err, queue.ErrClosed) {
		t.Errorf("late ack: got %v, want ErrLeaseLost and not ErrClosed", err)
	}
	if err := c.Nack(soon(t), old...); !errors.Is(err, queue.ErrSettled) {
		t.Errorf("a second late settle: got %v, want ErrSettled", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	take(t, newConsumer(t, direct), 5)
}

func TestNothingClosesTheChannel(t *testing.T) {
	q := open(t)
	publish(t, newPublisher(t, q), messages("m", 40)...)
	c := newConsumer(t, q)
	ds := take(t, c, 40)
	s, err := c.link.get(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	closed := s.ch.NotifyClose(make(chan *amqp.Error, 1))
	if err := c.Ack(soon(t), ds[0]); err != nil {
		t.Fatal(err)
	}
	for name, settle := range map[string]func(context.Context, ...*queue.Delivery) error{"ack": c.Ack, "nack": c.Nack} {
		if err := settle(soon(t), ds[0]); !errors.Is(err, queue.ErrSettled) {
			t.Errorf("second settlement, %s: got %v, want ErrSettled", name, err)
		}
	}
	// Ranges and single tags from several goroutines, each tag many times.
	done := make(chan error, 8)
	for g := range 8 {
		go func() {
			var bad error
			for from := 1; from < 40; from += 3 + g {
				if err := c.Ack(soon(t), ds[from:]...); err != nil {
					var se *queue.SettleError
					if !errors.Is(err, queue.ErrSettled) || errors.As(err, &se) && errors.Is(err, queue.ErrLeaseLost) {
						bad = err
					}
				}
			}
			done <- bad
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	// The broker answers in the order of frames: had it closed the channel, this
	// would fail.
	s.mu.Lock()
	err = s.ch.Qos(64, 0, false)
	s.mu.Unlock()
	if err != nil {
		t.Errorf("the channel did not survive: %v, %v", err, <-closed)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if n := ready(t, q); n != 0 {
		t.Errorf("got %d messages left, want all 40 acked", n)
	}
}

func TestABatchAckSettlesNoDeliveryOutsideIt(t *testing.T) {
	q := open(t)
	publish(t, newPublisher(t, q), messages("m", 12)...)
	c := newConsumer(t, q)
	ds := take(t, c, 12)
	want := []string{ds[2].ID, ds[5].ID}
	// 0 and 1 are the oldest; 2 stays, so 3 and later may not go by range.
	for _, batch := range [][]*queue.Delivery{{ds[4], ds[3], ds[0], ds[1]}, {ds[11], ds[6], ds[7]}, {ds[8], ds[9], ds[10]}} {
		if err := c.Ack(soon(t), batch...); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	left := take(t, newConsumer(t, q), 2)
	if diff := cmp.Diff(want, idsOf(left)); diff != "" {
		t.Errorf("given back by Close (-want +got):\n%s", diff)
	}
	if n := ready(t, q); n != 0 {
		t.Errorf("got %d more, want none", n)
	}
}

func TestNackGivesManyBackAtOnceAndNoOthers(t *testing.T) {
	for _, kind := range []string{"classic", "quorum"} {
		t.Run(kind, func(t *testing.T) {
			q := open(t, "type="+kind)
			publish(t, newPublisher(t, q), messages("m", 10)...)
			c := newConsumer(t, q)
			ds := take(t, c, 10)
			if err := c.Nack(soon(t), ds[0], ds[1], ds[2], ds[7]); err != nil {
				t.Fatal(err)
			}
			again := take(t, c, 4)
			seen := map[string]int{}
			for _, d := range again {
				seen[d.ID] = d.Attempt
			}
			want := map[string]int{ds[0].ID: 2, ds[1].ID: 2, ds[2].ID: 2, ds[7].ID: 2}
			if diff := cmp.Diff(want, seen); diff != "" {
				t.Errorf("attempts after a nack (-want +got):\n%s", diff)
			}
			if err := c.Nack(soon(t), again...); err != nil {
				t.Fatal(err)
			}
			third := take(t, c, 4)
			for _, d := range third {
				if want := map[string]int{"classic": 2, "quorum": 3}[kind]; d.Attempt != want {
					t.Errorf("third delivery of %s: got attempt %d, want %d", d.ID, d.Attempt, want)
				}
			}
			if err := c.Ack(soon(t), append(third, ds[3], ds[4], ds[5], ds[6], ds[8], ds[9])...); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestThePrefetchBoundHolds(t *testing.T) {
	q := open(t, "prefetch=5")
	publish(t, newPublisher(t, q), messages("m", 50)...)
	c := newConsumer(t, q)
	ds := take(t, c, 5)
	if n := ready(t, q); n != 45 {
		t.Errorf("got %d ready in the broker, want 45", n)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if more, err := c.Receive(ctx, 10); err != context.DeadlineExceeded {
		t.Errorf("got %d more deliveries, error %v; want none while 5 are unsettled", len(more), err)
	}
	if err := c.Ack(soon(t), ds[1], ds[3]); err != nil {
		t.Fatal(err)
	}
	take(t, c, 2)
	eventually(t, "two went out for the two acked", func() bool { return ready(t, q) == 43 })
}

func TestUnreadDeliveriesFreezeNothing(t *testing.T) {
	q := open(t, "prefetch=500", "window=1000")
	p := newPublisher(t, q)
	c := newConsumer(t, q) // nobody receives
	for range 5 {
		publish(t, p, messages("m", 1000)...)
	}
	eventually(t, "the prefetch is used up", func() bool { return ready(t, q) == 4500 })
	done := make(chan error, 1)
	go func() { done <- c.Close() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(3 * closeTimeout):
		t.Fatal("Close hangs")
	}
	eventually(t, "Close gave all back", func() bool { return ready(t, q) == 5000 })
}

func TestUnreadReturnsFreezeNothing(t *testing.T) {
	q := open(t, "window=1000", "channels=1")
	p := newPublisher(t, q)
	if err := q.administer(soon(t), "delete", func(ch *amqp.Channel) error {
		_, err := ch.QueueDelete(q.queue, false, false, false)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	// More returns than any buffer holds; the library would stop for 5 s for
	// each that nobody reads.
	start := time.Now()
	ms := messages("m", 5000)
	err := p.Publish(soon(t), ms...)
	for i := range ms {
		if o := queue.OutcomeOf(err, i); o != queue.Rejected {
			t.Fatalf("message %d: got %v, want rejected: %v", i, o, err)
		}
	}
	t.Logf("5000 returns in %v", time.Since(start))
}

func TestAConsumerOutlivesItsQueue(t *testing.T) {
	q := open(t)
	c := newConsumer(t, q)
	p := newPublisher(t, q)
	got := make(chan error, 1)
	go func() {
		// A blocked Receive learns of the end; one that comes later subscribes anew.
		ds, err := c.Receive(soon(t), 1)
		for tries := 0; err != nil && tries < 3; tries++ {
			ds, err = c.Receive(soon(t), 1)
		}
		if err == nil {
			err = c.Ack(soon(t), ds...)
		}
		got <- err
	}()
	if err := q.Delete(soon(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the queue is back", func() bool { return p.Publish(soon(t), messages("m", 1)...) == nil })
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestCloseIsBoundedWhenTheBrokerIsSilent(t *testing.T) {
	px := newProxy(t)
	open(t)
	q := openAt(t, px.url(), "queue="+nameOf(t))
	publish(t, newPublisher(t, q), messages("m", 3)...)
	c := newConsumer(t, q)
	take(t, c, 3)
	px.mute(true)
	done := make(chan struct{})
	go func() { defer close(done); q.Close() }()
	select {
	case <-done:
	case <-time.After(5 * closeTimeout):
		t.Fatal("Queue.Close hangs")
	}
}

func TestASettleAfterCloseIsClosedAndLost(t *testing.T) {
	q := open(t)
	publish(t, newPublisher(t, q), messages("m", 2)...)
	c := newConsumer(t, q)
	ds := take(t, c, 2)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ack(soon(t), ds[0]); !errors.Is(err, queue.ErrClosed) || !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("got %v, want ErrClosed and ErrLeaseLost", err)
	}
	take(t, newConsumer(t, q), 2)
}

func TestAutoAckHandsOutWhatACutLeft(t *testing.T) {
	px := newProxy(t)
	direct := open(t)
	q := openAt(t, px.url(), "queue="+nameOf(t)+"&auto-ack=true&prefetch=10")
	c := newConsumer(t, q)
	publish(t, newPublisher(t, direct), messages("m", 10)...)
	s, err := c.link.get(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "all are here", func() bool { return len(s.ready) == 10 })
	px.cut()
	ds := take(t, c, 10)
	if err := c.Nack(soon(t), ds[0]); !errors.Is(err, queue.ErrUnsupported) {
		t.Errorf("nack: got %v, want ErrUnsupported", err)
	}
	if err := c.Ack(soon(t), ds...); err != nil {
		t.Errorf("ack: %v", err)
	}
	if err := c.Ack(soon(t), ds[0]); !errors.Is(err, queue.ErrSettled) {
		t.Errorf("second ack: got %v, want ErrSettled", err)
	}
}

func TestAutoAckGivesBackOnCloseWhatNobodyTook(t *testing.T) {
	q := open(t, "auto-ack=true", "prefetch=4") // most of it waits in the library
	publish(t, newPublisher(t, q), messages("m", 100)...)
	c := newConsumer(t, q)
	taken := take(t, c, 3)
	eventually(t, "the broker has forgotten all", func() bool { return ready(t, q) == 0 })
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, d := range append(taken, take(t, newConsumer(t, q), 97)...) {
		if d.Key == "" || seen[d.ID] {
			t.Errorf("%s came twice, or without its key", d.ID)
		}
		seen[d.ID] = true
	}
}
