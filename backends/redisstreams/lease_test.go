package redisstreams_test

import (
	"errors"
	"testing"
	"time"

	"queuelab/backends/internal/redistest"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

// zombie is a consumer that holds the messages and is cut off for longer than
// its leases; revive lets it go on.
func zombie(t *testing.T, name string, ids ...string) (c queue.Consumer, held []*queue.Delivery, revive func()) {
	t.Helper()
	server := brokertest.Start(t, "redis", "no-persistence")
	proxy := redistest.NewProxy(t, server)
	c, p := redistest.Both(t, backend.At(t, proxy.URL(backend, name, "claim=1s&timeout=10s")))
	publish(t, p, ids...)
	held = redistest.Take(t, c, len(ids))
	proxy.Silence(true)
	revive = func() { proxy.Silence(false) }
	t.Cleanup(revive) // before its queue is closed
	return c, held, revive
}

func TestALateSettleIsErrLeaseLost(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	look := redistest.Client(t, server)
	old, held, revive := zombie(t, "zombie", "1", "2", "3", "4")
	c, _ := redistest.Both(t, backend.Queue(t, server, "zombie", "claim=1s"))
	ds := redistest.Take(t, c, 4)
	for _, d := range ds {
		if d.Attempt != 2 {
			t.Errorf("message %s: got attempt %d, want 2", d.ID, d.Attempt)
		}
	}
	settle(t, c.Ack(t.Context(), ds[0])) // finished by the other, and owned by it
	revive()
	var se *queue.SettleError
	if err := old.Ack(t.Context(), held[:3]...); !errors.As(err, &se) {
		t.Fatalf("late ack: got %v, want a *SettleError", err)
	}
	for i, err := range se.Errs {
		if !errors.Is(err, queue.ErrLeaseLost) {
			t.Errorf("late ack of message %s: got %v, want ErrLeaseLost", held[i].ID, err)
		}
	}
	if err := old.Nack(t.Context(), held[3]); !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("late nack: got %v, want ErrLeaseLost", err)
	}
	if n := pending(t, look, "zombie").Count; n != 3 {
		t.Errorf("pending after the late settles: got %d, want 3, the other consumer's", n)
	}
	settle(t, c.Ack(t.Context(), ds[1:]...))
}

func TestADeliveryThatWasLostAndCameBackIsNotSettledByTheOldOne(t *testing.T) {
	look := redistest.Client(t, brokertest.Start(t, "redis", "no-persistence"))
	old, held, revive := zombie(t, "back", "1")
	leases := stream("back") + ":leases:" + group
	name := look.ZRange(t.Context(), leases, 0, 0).Val()[0]
	c, _ := redistest.Both(t, backend.Queue(t, brokertest.Start(t, "redis", "no-persistence"), "back", "claim=1s"))
	ds := redistest.Take(t, c, 1)
	revive()
	// What the first renewal found is known when there is another.
	renewals, last := 0, look.ZScore(t.Context(), leases, name).Val()
	redistest.Eventually(t, "the revived consumer has renewed its leases twice", func() bool {
		if now := look.ZScore(t.Context(), leases, name).Val(); now != last {
			renewals, last = renewals+1, now
		}
		return renewals >= 3
	})
	settle(t, c.Nack(t.Context(), ds...))
	again := redistest.Take(t, old, 1)
	if err := old.Ack(t.Context(), held...); !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("ack of the old delivery: got %v, want ErrLeaseLost", err)
	}
	settle(t, old.Ack(t.Context(), again...))
}

func TestASlowConsumerThatIsAliveIsNotRobbed(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	q := backend.Queue(t, server, "slow", "claim=1s")
	slow, p := redistest.Both(t, q)
	publish(t, p, "1", "2")
	ds := redistest.Take(t, slow, 2)
	other, _ := redistest.Both(t, q)
	nothing(t, other, 3*time.Second) // three leases
	settle(t, slow.Ack(t.Context(), ds...))
}

func TestANameIsDeletedOnlyWhenNothingIsPendingUnderIt(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	look := redistest.Client(t, server)
	zombie(t, "names", "1", "2")
	var dead string
	for name := range names(t, look, "names") {
		dead = name
	}
	// Alive, and not receiving: it tends the names and claims nothing.
	q := backend.Queue(t, server, "names", "claim=1s")
	c, p := redistest.Both(t, q)
	lease := func() bool {
		return look.ZScore(t.Context(), stream("names")+":leases:"+group, dead).Val() < float64(time.Now().UnixMilli()-1000)
	}
	redistest.Eventually(t, "the dead one's name has no lease for a second", lease)
	if n := names(t, look, "names")[dead]; n != 2 {
		t.Fatalf("pending under the dead name: got %d, want 2", n)
	}
	publish(t, p, "3")
	ds := redistest.Take(t, c, 3)
	redistest.Eventually(t, "the dead one's name is deleted", func() bool {
		_, there := names(t, look, "names")[dead]
		return !there
	})
	settle(t, c.Ack(t.Context(), ds...))
}

func TestConsumersHaveNamesOfTheirOwn(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	look := redistest.Client(t, server)
	const n = 8
	var cs []queue.Consumer
	for range 2 { // as two processes would
		q := backend.Queue(t, server, "own", "")
		for range n / 2 {
			c, p := redistest.Both(t, q)
			publish(t, p, "m")
			redistest.Take(t, c, 1)
			cs = append(cs, c)
		}
	}
	if got := names(t, look, "own"); len(got) != n {
		t.Errorf("names: got %v, want %d", got, n)
	}
	for _, c := range cs {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if got := names(t, look, "own"); len(got) != 1 || got["released"] != n {
		t.Errorf("names after Close: got %v, want only released with %d pending", got, n)
	}
}
