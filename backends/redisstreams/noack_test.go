package redisstreams_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"queuelab/backends/internal/redistest"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

func TestWithoutAcksNothingIsEverPending(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	look := redistest.Client(t, server)
	q := backend.Queue(t, server, "noack", "noack=true&prefetch=10")
	c, p := redistest.Both(t, q)
	publish(t, p, "1", "2", "3", "4")
	if ds := redistest.Take(t, c, 1); ds[0].ID != "1" || ds[0].Attempt != 0 {
		t.Errorf("got message %s, attempt %d, want 1, and no count", ds[0].ID, ds[0].Attempt)
	}
	if n := pending(t, look, "noack").Count; n != 0 {
		t.Errorf("pending while the handler works: got %d, want 0", n)
	}
	// What was read ahead and nobody has received is not lost by a Close.
	settle(t, c.Close())
	next, err := q.Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range redistest.Take(t, next, 3) {
		if want := fmt.Sprint(i + 2); d.ID != want {
			t.Errorf("after a close: got message %s, want %s", d.ID, want)
		}
	}
	nothing(t, next, 100*time.Millisecond)
	redistest.Eventually(t, "nothing is pending under any name", func() bool { return pending(t, look, "noack").Count == 0 })
}

func TestTheOldestAreDroppedAndTheBacklogSaysSo(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	q := backend.Queue(t, server, "maxlen", "maxlen=3")
	p, err := q.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	backlog := func(want int64) {
		t.Helper()
		b, err := q.(queue.Backlogger).Backlog(t.Context())
		if err != nil || b.Ready != want {
			t.Errorf("backlog: got %+v and %v, want %d ready", b, err, want)
		}
	}
	publish(t, p, "1", "2", "3", "4", "5")
	backlog(3)
	c, err := q.Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range redistest.Take(t, c, 3) {
		if want := fmt.Sprint(i + 3); d.ID != want {
			t.Errorf("got message %s, want %s", d.ID, want)
		}
		settle(t, c.Ack(t.Context(), d))
	}
	backlog(0) // though the broker still counts what was dropped unread
	publish(t, p, "6", "7", "8", "9", "10")
	backlog(3)
	settle(t, c.Ack(t.Context(), redistest.Take(t, c, 3)...))
	backlog(0)
}

func TestWhatIsDroppedInAConsumersHandIsTold(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	q := backend.Queue(t, server, "dropped", "maxlen=2&claim=1s")
	c, p := redistest.Both(t, q)
	publish(t, p, "1")
	held := redistest.Take(t, c, 1)
	publish(t, p, "2", "3", "4")
	// It is still this consumer's, with its body, and can be settled.
	settle(t, c.Ack(t.Context(), held...))
	ds := redistest.Take(t, c, 2)
	if ds[0].ID != "3" || ds[1].ID != "4" {
		t.Errorf("got messages %s, %s, want 3, 4", ds[0].ID, ds[1].ID)
	}
}

func TestBadBoundsAreRefused(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	for _, bad := range []string{"maxlen=0", "maxlen=-1", "noack=1"} {
		name, _, _ := strings.Cut(bad, "=")
		if _, err := backend.Try(server.QueueURL(backend.Scheme, "wrong", bad)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want an error that names it", bad, err)
		}
	}
}

func TestANackWithoutAcksIsUnsupported(t *testing.T) {
	c, _ := redistest.Both(t, backend.Queue(t, brokertest.Start(t, "redis", "no-persistence"), "nonack", "noack=true"))
	if err := c.Nack(context.Background()); !errors.Is(err, queue.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
}
