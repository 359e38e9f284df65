package admission_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"queuelab/app/admission"
	"queuelab/app/sale"
	"queuelab/backends"
	"queuelab/queue"
)

func openQueue(t *testing.T, url string) queue.Queue {
	t.Helper()
	q, err := backends.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := errors.Join(q.Delete(ctx), q.Close()); err != nil {
			t.Error(err)
		}
	})
	return q
}

// into has the gate queue what it admits.
func into(t *testing.T, g *admission.Redis, q queue.Queue) *queue.ScriptEnqueue {
	t.Helper()
	how, err := q.(queue.ScriptEnqueuer).ScriptEnqueue(t.Context())
	if err != nil || how == nil {
		t.Fatalf("how a script enqueues: got %v, %v", how, err)
	}
	if err := g.EnqueueInto(t.Context(), how); err != nil {
		t.Fatal(err)
	}
	return how
}

// queueURL is a queue in the Redis of url.
func queueURL(scheme, url string) string {
	return scheme + strings.TrimPrefix(url, "redis") + "?queue=orders"
}

func scriptQueues(t *testing.T, run func(t *testing.T, g *admission.Redis, c *redis.Client, q queue.Queue, how *queue.ScriptEnqueue)) {
	for _, scheme := range []string{"redis+streams", "redis+list", "redis+list-reliable"} {
		t.Run(scheme, func(t *testing.T) {
			url, c := server(t)
			g, err := admission.OpenRedis(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			q := openQueue(t, queueURL(scheme, url))
			run(t, g, c, q, into(t, g, q))
		})
	}
}

func TestAGateThatEnqueuesIsAGateLikeAnyOther(t *testing.T) {
	scriptQueues(t, func(t *testing.T, g *admission.Redis, _ *redis.Client, _ queue.Queue, _ *queue.ScriptEnqueue) {
		conform(t, func() sale.Gate { return g })
	})
}

// Whoever admits may die right after it: what was admitted is in the queue.
func TestWhatIsAdmittedIsInTheQueueOnce(t *testing.T) {
	scriptQueues(t, func(t *testing.T, g *admission.Redis, _ *redis.Client, q queue.Queue, _ *queue.ScriptEnqueue) {
		v := open(3, func(v *sale.Voucher) { v.PerUser = 2 })
		load(t, g, v)
		clicks := []sale.Reservation{reservation(v, 1, "u"), nth(reservation(v, 2, "u"), 1), reservation(v, 3, "v")}
		for _, r := range clicks {
			for range 2 { // the second time without a unit and without a message
				a, err := g.Click(t.Context(), sale.Click{Reservation: r})
				if want := (sale.Answer{Verdict: sale.Admitted, Order: r.OrderID, Nth: r.Nth, Queued: true}); err != nil || a != want {
					t.Fatalf("got %+v, %v, want %+v", a, err, want)
				}
			}
		}
		for _, refused := range []string{"u", "w"} { // has two; is too late
			if a, err := g.Click(t.Context(), sale.Click{Reservation: reservation(v, 9, refused)}); err != nil || a.Queued {
				t.Fatalf("got %+v, %v, want a refusal", a, err)
			}
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		c, err := q.Consumer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var got []sale.Reservation
		for len(got) < len(clicks) {
			ds, err := c.Receive(ctx, 10)
			if err != nil {
				t.Fatalf("received %v, then %v", got, err)
			}
			for _, d := range ds {
				r, err := sale.DecodeReservation(d.Body)
				if err != nil || d.ID != r.OrderID.String() || d.Key != d.ID {
					t.Errorf("message %s with key %s: got %+v, %v", d.ID, d.Key, r, err)
				}
				got = append(got, r)
			}
		}
		if d := cmp.Diff(clicks, got); d != "" {
			t.Errorf("reservations in the queue (-clicked +got):\n%s", d)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if ds, _ := c.Receive(ctx, 10); len(ds) > 0 {
			t.Errorf("got %d more messages, want none", len(ds))
		}
	})
}

func TestAnEnqueueThatFailsTakesNothing(t *testing.T) {
	scriptQueues(t, func(t *testing.T, g *admission.Redis, c *redis.Client, _ queue.Queue, how *queue.ScriptEnqueue) {
		v := open(5, nil)
		load(t, g, v)
		fails := func(want string) {
			t.Helper()
			before := dump(t, c)
			if want == "OOM" {
				if err := c.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
					t.Fatal(err)
				}
			}
			a, err := g.Click(t.Context(), sale.Click{Reservation: reservation(v, 1, "u")})
			if e := c.ConfigSet(t.Context(), "maxmemory", "0").Err(); e != nil {
				t.Fatal(e)
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %+v, %v, want %s", a, err, want)
			}
			if d := cmp.Diff(before, dump(t, c)); d != "" {
				t.Errorf("keys (-before +after):\n%s", d)
			}
		}
		fails("OOM")
		if err := errors.Join(c.Del(t.Context(), how.Key).Err(), c.Set(t.Context(), how.Key, "x", 0).Err()); err != nil {
			t.Fatal(err)
		}
		fails("WRONGTYPE")
		if err := c.Del(t.Context(), how.Key).Err(); err != nil {
			t.Fatal(err)
		}
		admit(t, g, reservation(v, 1, "u"), sale.Admitted, 1)
	})
}

func TestAQueueElsewhereIsNotEnqueuedInto(t *testing.T) {
	url, c := server(t)
	g, err := admission.OpenRedis(t.Context(), strings.TrimSuffix(url, "/0")+"/1")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	how, err := openQueue(t, queueURL("redis+list", url)).(queue.ScriptEnqueuer).ScriptEnqueue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	another := *how
	another.Server = strings.Repeat("0", 40) + "/1"
	for name, how := range map[string]*queue.ScriptEnqueue{"in another database": how, "on another server": &another} {
		if err := g.EnqueueInto(t.Context(), how); !errors.Is(err, admission.ErrElsewhere) {
			t.Errorf("%s: got %v, want ErrElsewhere", name, err)
		}
	}
	v := open(5, nil)
	load(t, g, v)
	if a, err := g.Click(t.Context(), sale.Click{Reservation: reservation(v, 1, "u")}); err != nil || a.Queued {
		t.Errorf("got %+v, %v, want an order that is not queued", a, err)
	}
	if n := c.LLen(t.Context(), how.Key).Val(); n != 0 {
		t.Errorf("got %d messages in the other database, want none", n)
	}
}
