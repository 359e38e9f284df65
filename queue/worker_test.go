package queue_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"queuelab/backends/memory"
	"queuelab/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a worker's surroundings: a memory queue with messages in it.
type rig struct {
	*testing.T
	q   queue.Queue
	c   queue.Consumer
	end context.CancelFunc
	ctx context.Context

	mu   sync.Mutex
	errs []string
	log  []string
}

// bubble runs f in virtual time.
func bubble(t *testing.T, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q, err := memory.Open(t.Context(), &url.URL{Scheme: "memory", Host: "orders"})
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		c, err := q.Consumer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{T: t, q: q, c: c}
		r.ctx, r.end = context.WithCancel(t.Context())
		defer r.end()
		f(r)
	})
}

// publish takes "id" or "id@key".
func (r *rig) publish(specs ...string) {
	r.Helper()
	p, err := r.q.Publisher(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	for _, s := range specs {
		id, key, _ := strings.Cut(s, "@")
		if err := p.Publish(r.Context(), queue.Message{ID: id, Key: key}); err != nil {
			r.Fatal(err)
		}
	}
}

func (r *rig) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *rig) want(want ...string) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if diff := cmp.Diff(want, r.log); diff != "" {
		r.Errorf("the log differs (-want +got):\n%s", diff)
	}
}

func (r *rig) onError(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err.Error())
}

// run runs w until it is idle, stops it, and returns how long it took to stop.
func (r *rig) run(w *queue.Worker, d time.Duration) time.Duration {
	r.Helper()
	if w.Consumer == nil {
		w.Consumer = r.c
	}
	w.OnError = r.onError
	done := make(chan error, 1)
	go func() { done <- w.Run(r.ctx) }()
	time.Sleep(d)
	synctest.Wait()
	stop := time.Now()
	r.end()
	if err := <-done; err != nil {
		r.Errorf("Run: got %v, want nil for a wanted stop", err)
	}
	return time.Since(stop)
}

// left closes the consumer and says what comes again, as "id/attempt".
func (r *rig) left() []string {
	r.Helper()
	if err := r.c.Close(); err != nil {
		r.Fatal(err)
	}
	c, err := r.q.Consumer(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Millisecond)
	defer cancel()
	ds, _ := c.Receive(ctx, 1000)
	var out []string
	for _, d := range ds {
		out = append(out, fmt.Sprintf("%s/%d", d.ID, d.Attempt))
	}
	return out
}

func (r *rig) wantLeft(want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.left()); diff != "" {
		r.Errorf("what the worker left in the queue differs (-want +got):\n%s", diff)
	}
}

func ok(context.Context, []*queue.Delivery) []error { return nil }

func TestWorkerStops(t *testing.T) {
	t.Run("ARunningHandlerFinishes", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("a")
			took := r.run(&queue.Worker{DrainTimeout: 3 * time.Second, Handle: func(ctx context.Context, _ []*queue.Delivery) []error {
				time.Sleep(2 * time.Second)
				return []error{ctx.Err()}
			}}, time.Second)
			if want := time.Second; took != want {
				t.Errorf("got a stop after %v, want %v: when the handler is done", took, want)
			}
			r.wantLeft()
		})
	})
	t.Run("AnEndlessHandlerIsCancelledAndItsMessageComesBack", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("a")
			took := r.run(&queue.Worker{DrainTimeout: 3 * time.Second, Handle: func(ctx context.Context, _ []*queue.Delivery) []error {
				<-ctx.Done()
				return []error{ctx.Err()}
			}}, time.Second)
			if want := 3 * time.Second; took != want {
				t.Errorf("got a stop after %v, want %v: the DrainTimeout", took, want)
			}
			r.wantLeft("a/2")
		})
	})
	t.Run("WhatACancelledHandlerFinishedIsStillAcked", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("a")
			r.run(&queue.Worker{Handle: func(ctx context.Context, _ []*queue.Delivery) []error {
				<-ctx.Done()
				return nil
			}}, time.Second)
			r.wantLeft()
		})
	})
	t.Run("WhatWasNotStartedIsLeftToOthers", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("a@k", "b@k", "c@k")
			r.run(&queue.Worker{Lanes: 2, DrainTimeout: time.Hour, Handle: func(_ context.Context, ds []*queue.Delivery) []error {
				time.Sleep(2 * time.Second)
				return nil
			}}, time.Second)
			r.wantLeft("b/2", "c/2")
		})
	})
	t.Run("AFullWorkerNoticesTheStop", func(t *testing.T) {
		bubble(t, func(r *rig) {
			for i := range 20 {
				r.publish(fmt.Sprintf("m%d@k", i))
			}
			took := r.run(&queue.Worker{DrainTimeout: time.Second, Handle: func(ctx context.Context, _ []*queue.Delivery) []error {
				<-ctx.Done()
				return []error{ctx.Err()}
			}}, time.Second)
			if want := time.Second; took != want {
				t.Errorf("got a stop after %v, want %v", took, want)
			}
			if got, want := len(r.left()), 20; got != want {
				t.Errorf("got %d messages left, want %d", got, want)
			}
		})
	})
	t.Run("ABackoffDoesNotDelayTheStop", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("a")
			took := r.run(&queue.Worker{
				DrainTimeout: time.Minute,
				Backoff:      func(int) time.Duration { return time.Hour },
				Handle:       func(context.Context, []*queue.Delivery) []error { return []error{errors.New("no")} },
			}, time.Second)
			if took != 0 {
				t.Errorf("got a stop after %v, want at once", took)
			}
			r.wantLeft("a/2")
		})
	})
	t.Run("AClosedConsumerIsErrClosed", func(t *testing.T) {
		bubble(t, func(r *rig) {
			done := make(chan error, 1)
			go func() { done <- (&queue.Worker{Consumer: r.c, Handle: ok}).Run(r.ctx) }()
			synctest.Wait()
			r.c.Close()
			if err := <-done; !errors.Is(err, queue.ErrClosed) {
				t.Errorf("Run: got %v, want ErrClosed", err)
			}
		})
	})
	t.Run("MissingFieldsAreErrors", func(t *testing.T) {
		bubble(t, func(r *rig) {
			for name, w := range map[string]*queue.Worker{
				"no consumer":    {Handle: ok},
				"no handler":     {Consumer: r.c},
				"no dead letter": {Consumer: r.c, Handle: ok, MaxAttempts: 3},
			} {
				if err := w.Run(r.ctx); err == nil {
					t.Errorf("%s: got nil, want an error", name)
				}
			}
		})
	})
}

func TestWorkerLanes(t *testing.T) {
	t.Run("AKeyKeepsItsOrderAndKeysRunSideBySide", func(t *testing.T) {
		bubble(t, func(r *rig) {
			var want = make(map[string][]string)
			for i := range 100 {
				key := fmt.Sprintf("k%d", i%8)
				id := fmt.Sprintf("m%d", i)
				want[key] = append(want[key], id)
				r.publish(id + "@" + key)
			}
			got := make(map[string][]string)
			running, most := 0, 0
			r.run(&queue.Worker{Lanes: 4, Batch: 3, Handle: func(_ context.Context, ds []*queue.Delivery) []error {
				r.mu.Lock()
				running++
				most = max(most, running)
				r.mu.Unlock()
				// Later messages would overtake, if they could.
				time.Sleep(time.Duration(len(ds[0].ID)*7%5) * time.Second)
				r.mu.Lock()
				defer r.mu.Unlock()
				running--
				for _, d := range ds {
					got[d.Key] = append(got[d.Key], d.ID)
				}
				return nil
			}}, time.Hour)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("order per key differs (-published +handled):\n%s", diff)
			}
			if most < 2 || most > 4 {
				t.Errorf("got at most %d handlers at once, want 2 to 4 with 4 lanes", most)
			}
			r.wantLeft()
		})
	})
	t.Run("MessagesWithoutAKeyUseAllLanes", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("a", "b", "c", "d")
			start := time.Now()
			r.run(&queue.Worker{Lanes: 4, Handle: func(_ context.Context, ds []*queue.Delivery) []error {
				time.Sleep(time.Second)
				r.note("%v", time.Since(start))
				return nil
			}}, time.Minute)
			r.want("1s", "1s", "1s", "1s")
		})
	})
	t.Run("ABatchIsWhatIsThereUpToItsLimit", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("a", "b", "c", "d", "e")
			var sizes []int
			r.run(&queue.Worker{Batch: 2, Handle: func(_ context.Context, ds []*queue.Delivery) []error {
				time.Sleep(time.Second)
				sizes = append(sizes, len(ds))
				return nil
			}}, time.Minute)
			sum := 0
			for _, n := range sizes {
				sum += n
			}
			if sum != 5 || slices.Max(sizes) != 2 || len(sizes) > 4 {
				t.Errorf("got batches of %v, want 5 messages in batches of at most 2", sizes)
			}
			r.wantLeft()
		})
	})
	t.Run("AFailedDeliveryOfABatchComesAgainAlone", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("a", "b", "c")
			first := true
			r.run(&queue.Worker{Batch: 3, Consumer: &inOneGo{Consumer: r.c}, Handle: func(_ context.Context, ds []*queue.Delivery) []error {
				errs := make([]error, len(ds))
				for i, d := range ds {
					r.note("%s/%d", d.ID, d.Attempt)
					if d.ID == "b" && first {
						first = false
						errs[i] = errors.New("no")
					}
				}
				return errs
			}}, time.Minute)
			r.want("a/1", "b/1", "c/1", "b/2")
			r.wantLeft()
		})
	})
}

// inOneGo hands over the first three messages together, so that they are one batch.
type inOneGo struct {
	queue.Consumer
	seen bool
}

func (c *inOneGo) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	var all []*queue.Delivery
	for {
		ds, err := c.Consumer.Receive(ctx, max-len(all))
		all = append(all, ds...)
		if err != nil || c.seen || len(all) >= 3 {
			c.seen = true
			return all, err
		}
	}
}
